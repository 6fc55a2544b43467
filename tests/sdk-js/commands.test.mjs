// Commands and terminals in a live sandbox.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import {
    Client,
    CommandOverError,
    ExecutionFailedError,
    NoSuchCommandError,
    NoTerminalClientError,
    NoTerminalError,
    Sandbox,
    SandboxGoneError,
} from "cloche";

// Node before 22 has none: users bring that of the package ws, which the tests find by its path.
const WebSocket = globalThis.WebSocket ?? (await import(process.env.WS_PACKAGE)).default;
const client = new Client({ WebSocket });

let box;
before(async () => (box = await client.sandboxes.create({ profile: "base", env: { WHO: "you" } })));
after(() => box.close());

test("a line for the shell, and a program", async () => {
    const done = await box.commands.run("echo hello $WHO; echo bad >&2; exit 3");
    assert.equal(done.stdout, "hello you\n");
    assert.equal(done.stderr, "bad\n");
    assert.deepEqual(
        [done.exitCode, done.status, done.ok, done.timedOut],
        [3, "exited", false, false],
    );
    assert.throws(
        () => done.check(),
        (error) =>
            error instanceof ExecutionFailedError && /exit status 3 \(bad\)/.test(error.message),
    );
    const program = await box.commands.run(["printf", "%s|", "a b", "$WHO"], {
        cwd: "/tmp",
        env: { X: "1" },
    });
    assert.equal(program.stdout, "a b|$WHO|");
    assert.equal((await box.commands.run("cat", { stdin: "given" })).check().stdout, "given");
    assert.equal((await box.commands.run("sleep 1000", { timeoutMs: 200 })).timedOut, true);
});

test("lines and events as they come", async () => {
    const lines = [];
    await box.commands.run("echo a; echo b; printf c; echo e >&2", {
        onStdout: (line) => lines.push(line),
        onStderr: (line) => lines.push(`! ${line}`),
    });
    assert.deepEqual(lines.sort(), ["! e", "a", "b", "c"]);
    const types = [];
    for await (const event of box.commands.stream("echo x")) types.push(event.type);
    assert.deepEqual(types, ["start", "stdout", "end"]);
});

test("the same result from the stream as from the server", async () => {
    const ours = await box.commands.run("seq 5; ls missing");
    assert.deepEqual(ours, await box.commands.get(ours.id).info());
});

test("a signal ends a command", async () => {
    const stop = new AbortController();
    let id;
    await assert.rejects(async () => {
        for await (const event of box.commands.stream("echo on; sleep 1000", {
            signal: stop.signal,
        })) {
            if (event.type === "start") id = event.id;
            if (event.type === "stdout") stop.abort(new Error("enough"));
        }
    }, /enough/);
    const end = await box.commands.get(id).wait();
    assert.deepEqual([end.signal, end.timedOut], [9, false]);
});

test("a reader that leaves ends a command, unless it is to go on", async () => {
    const left = async (options) => {
        for await (const event of box.commands.stream("echo on; sleep 0.3; echo off", options))
            if (event.type === "start") return box.commands.get(event.id).wait();
    };
    assert.equal((await left({})).signal, 9);
    assert.equal((await left({ onDisconnect: "continue" })).stdout, "on\noff\n");
});

test("in the background", async () => {
    const command = await box.commands.start("read a; echo got $a; cat");
    assert.equal((await command.info()).status, "running");
    await command.write("one\n");
    await command.write("two", { eof: true });
    const lines = [];
    const end = await command.wait({ onStdout: (line) => lines.push(line) });
    assert.deepEqual(lines, ["got one", "two"]);
    assert.equal(end.exitCode, 0);
    assert.equal(end.stdout, "got one\ntwo");
    await assert.rejects(command.write("more"), CommandOverError);
    const after = [];
    for await (const event of command.stream({ after: 1 })) after.push(event.type);
    assert.ok(!after.includes("start") && after.at(-1) === "end");
    const listed = await box.commands.list().toArray();
    assert.ok(listed.some((one) => one.id === command.id && one.exitCode === 0));
    await command.delete();
    await assert.rejects(command.info(), NoSuchCommandError);
});

test("killed, softly and not", async () => {
    const soft = await box.commands.start(
        "trap 'echo bye; exit 7' TERM; echo on; while :; do sleep 0.01; done",
    );
    for await (const event of soft.stream()) if (event.type === "stdout") break;
    await soft.signal("SIGTERM");
    const end = await soft.wait();
    assert.deepEqual([end.exitCode, end.stdout], [7, "on\nbye\n"]);
    const hard = await box.commands.start(["sleep", "1000"]);
    await hard.kill();
    assert.equal((await hard.wait()).signal, 9);
});

test("a terminal", async () => {
    const terminal = await box.commands.terminal({
        cmd: "stty size; read a; echo got $a; stty size",
        rows: 30,
        cols: 90,
    });
    assert.match(terminal.commandId, /^cmd_/);
    assert.match(await terminal.readUntil("30 90"), /30 90/);
    terminal.resize(40, 100);
    terminal.write("über\n");
    const end = await terminal.wait();
    assert.equal(end.exitCode, 0);
    assert.equal(end.id, terminal.commandId);
});

test("a terminal that is left and taken up again", async () => {
    const terminal = await box.commands.terminal({
        cmd: "echo ready; read a; echo got $a; read b",
        onDisconnect: "continue",
    });
    await terminal.readUntil("ready");
    await terminal.close();
    const again = await box.commands.attach(terminal.commandId);
    again.write("x\n");
    assert.match(await again.readUntil("got x"), /ready(.|\r|\n)*got x/);
    again.write("\n");
    await again.wait();
    await assert.rejects(box.commands.attach(terminal.commandId), NoTerminalError);
});

test("a shell hangs up when its terminal is left", async () => {
    const terminal = await box.commands.terminal();
    terminal.write("echo $((6 * 7))\n");
    await terminal.readUntil("42");
    const { commandId } = terminal;
    await terminal.close();
    const end = await box.commands
        .get(commandId)
        .wait()
        .catch((error) => error);
    assert.ok(
        end.code === "no_events" || end.signal !== null || end.exitCode !== null,
        String(end),
    );
});

test("a terminal that ends with its signal", async () => {
    const stop = new AbortController();
    const terminal = await box.commands.terminal({ signal: stop.signal });
    stop.abort(new Error("enough"));
    await assert.rejects(terminal.readUntil("never"), /enough/);
});

test("why there is no terminal", async () => {
    const gone = await client.sandboxes.create({ profile: "base" });
    await gone.close();
    await assert.rejects(gone.commands.terminal(), SandboxGoneError);
});

test("Node before 22 says what to do", { skip: globalThis.WebSocket !== undefined }, async () => {
    const plain = await Sandbox.connect(box.id);
    await assert.rejects(plain.commands.terminal(), (error) => {
        assert.ok(error instanceof NoTerminalClientError);
        assert.match(error.message, /has no WebSocket.*version 22.*new Client\(\{ WebSocket \}\)/);
        return true;
    });
});
