// The server is killed after `begun` and before our stdin says more: a cell and a command go on.

import { once } from "node:events";
import { Sandbox } from "cloche";

const box = await Sandbox.create({ profile: "base" });
const wait = "while not os.path.exists('go'): time.sleep(0.01)";
const begun = [];
const seen = (what) => new Promise((resolve) => begun.push((line) => line === what && resolve()));
const tell = (line) => begun.forEach((hear) => hear(line));
const both = Promise.all([seen("cell"), seen("command")]);
const cell = box.run(`import os, time\nprint('cell', flush=True)\n${wait}\n'after'`, {
    onStdout: tell,
});
const command = box.commands.run("echo command; while [ ! -e go ]; do sleep 0.01; done; echo 42", {
    onStdout: tell,
});
await both;
console.log("begun");
await once(process.stdin, "data");
await box.files.write("go", "");
const result = await cell;
console.log(result.status, result.text);
console.log("done", (await command).stdout.trim().split("\n").at(-1));
await box.close();
process.exit();
