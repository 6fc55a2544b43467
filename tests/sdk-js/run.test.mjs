// Programs in sandboxes of their own: one, many, and what they make.

import assert from "node:assert/strict";
import { test } from "node:test";
import {
    BadFieldsError,
    Client,
    ClientGoneError,
    NoServerError,
    UnknownProfileError,
    run,
} from "cloche";

test("a program's last value", async () => {
    const result = await run("import pandas as pd; pd.Series([1, 2, 3]).sum()");
    assert.equal(result.text, "6");
    assert.equal(result.profile, "data");
    assert.equal(result.ok, true);
});

test("lines, input, environment, files", async () => {
    const lines = [];
    const result = await run(
        "import os, sys\nprint(os.environ['A_B'], input(), open('in/x').read(), flush=True)\nsys.exit(3)",
        {
            env: { A_B: "env" },
            stdin: "typed\n",
            files: { "in/x": "filed" },
            onStdout: (line) => lines.push(line),
            profile: "base",
        },
    );
    assert.deepEqual(lines, ["env typed filed"]);
    assert.equal(result.exitCode, 3);
});

test("files that are too large for a request", async () => {
    const large = new Uint8Array(2 << 20).fill(65);
    const result = await run("len(open('large').read())", { files: { large } });
    assert.equal(result.text, `${large.length}`);
});

test("a figure", async () => {
    const result = await run("import matplotlib.pyplot as plt\nplt.plot([1, 4, 9]);", {
        timeoutMs: 60_000,
    });
    assert.deepEqual([...result.results.at(-1).png.subarray(0, 4)], [0x89, 0x50, 0x4e, 0x47]);
});

test("code that fails, and code that takes too long", async () => {
    const failed = await run("1 / 0");
    assert.deepEqual([failed.status, failed.error.name], ["error", "ZeroDivisionError"]);
    const slow = await run("while True: pass", { timeoutMs: 200 });
    assert.deepEqual([slow.status, slow.timedOut, slow.limitHit], ["timeout", true, "time"]);
    await assert.rejects(run("1", { profile: "gpu" }), UnknownProfileError);
});

test("a stream", async () => {
    const client = new Client();
    const types = [];
    for await (const event of client.stream("print('x')\n7")) types.push(event.type);
    assert.equal(types[0], "start");
    assert.ok(types.includes("stdout") && types.includes("result"));
    assert.equal(types.at(-1), "end");
});

test("a signal ends the program", async () => {
    const stop = new AbortController();
    let id;
    const running = run("print('on', flush=True)\nwhile True: pass", {
        timeoutMs: 60_000,
        signal: stop.signal,
        onEvent: (event) => (id ??= event.id),
        onStdout: () => stop.abort(new Error("enough")),
    });
    await assert.rejects(running, /enough/);
    const client = new Client();
    const end = async () => {
        for (;;) if (await client.result(id)) return; // null while it runs
    };
    await assert.rejects(end(), ClientGoneError);
});

test("what is put together from events is what the server says it was", async () => {
    const codes = [
        "import sys; print(sys.argv[1]); open('made.txt', 'w').write('x')",
        "from IPython.display import display, clear_output\nprint(1); clear_output(); display(2)\n3",
        "import sys; print('e', file=sys.stderr); 1/0",
        "import matplotlib.pyplot as plt; plt.plot([1]); plt.show(); 'after'",
    ];
    for (const code of codes) {
        const ours = await run(code, { args: ["one"], formats: ["svg"], timeoutMs: 60_000 });
        const theirs = await new Client().result(ours.id);
        assert.deepEqual(ours, theirs, code);
    }
});

test("a file that a program made", async () => {
    const client = new Client();
    const { files } = await client.run("open('a.txt', 'w').write('made')");
    assert.deepEqual(
        files.map(({ path, sizeBytes }) => [path, sizeBytes]),
        [["a.txt", 4]],
    );
    assert.equal(new TextDecoder().decode(await client.files.read(files[0].fileId)), "made");
});

test("what ran is remembered", async () => {
    const result = await run("1 + 1");
    assert.equal((await new Client().result(result.id)).text, "2");
    const types = [];
    for await (const event of new Client().follow(result.id)) types.push(event.type);
    assert.equal(types.at(-1), "end");
});

test("many", async () => {
    const client = new Client();
    const requests = Array.from({ length: 20 }, (_, i) => ({ code: `${i} ** 2`, profile: "base" }));
    const squares = [];
    for await (const { index, result } of client.batch(requests, { concurrency: 4 }))
        squares[index] = result.text;
    assert.deepEqual(
        squares,
        requests.map((_, i) => `${i ** 2}`),
    );
});

test("one of many that is wrong does not spoil the others", async () => {
    const items = [];
    for await (const item of new Client().batch([{ code: "1" }, { code: 2 }, { code: "1/0" }]))
        items[item.index] = item;
    assert.equal(items[0].result.text, "1");
    assert.ok(items[1].problem instanceof BadFieldsError && items[1].result === undefined);
    assert.equal(items[2].result.error.name, "ZeroDivisionError");
});

// ------------------------------------------------------------------------------- talking

// Node before 22 has no WebSocket: see commands.test.mjs.
const WebSocket = globalThis.WebSocket ?? (await import(process.env.WS_PACKAGE)).default;
const talking = new Client({ WebSocket });
const SOON = { timeoutMs: 20_000, profile: "base" };

test("a program that asks", async () => {
    const asked = [];
    const lines = [];
    const code =
        "import getpass\nname = input('Who? ')\nprint('hi', name)\n" +
        "word = getpass.getpass('Word: ')\ntry: input('More? ')\nexcept EOFError: pass\n[name, word]";
    const result = await talking.run(code, {
        ...SOON,
        onStdout: (line) => lines.push(line),
        onInput: ({ prompt, password }) => {
            asked.push([prompt, password]);
            return { "Who? ": "Ada", "Word: ": "plugh", "More? ": null }[prompt];
        },
    });
    assert.equal(result.text, "['Ada', 'plugh']");
    assert.deepEqual([result.stdout, lines], ["hi Ada\n", ["hi Ada"]]);
    assert.deepEqual(asked, [
        ["Who? ", false],
        ["Word: ", true],
        ["More? ", false],
    ]);
});

test("a conversation", async () => {
    const code = "import sys\nfor line in sys.stdin: print(line.upper(), end='', flush=True)\n'end'";
    const files = { large: new Uint8Array(2 << 20) };
    const talk = await talking.talk(code, { ...SOON, files });
    let text = "";
    for await (const event of talk) {
        if (event.type === "start") talk.write("one\n");
        if (event.type === "stdout") text += event.text;
        if (text === "ONE\n") talk.write(new TextEncoder().encode("two\n"));
        if (text === "ONE\nTWO\n") {
            talk.answer("three");
            talk.endInput();
        }
    }
    const result = await talk.result();
    assert.deepEqual([result.stdout, result.text], ["ONE\nTWO\nTHREE\n", "'end'"]);
    await talk.close();
});

test("a conversation is interrupted, or left", async () => {
    const talk = await talking.talk("input('? ')", SOON);
    for await (const event of talk) if (event.type === "input") talk.interrupt();
    assert.equal((await talk.result()).status, "interrupted");

    const left = await talking.talk("input('? ')", SOON);
    for await (const event of left) if (event.type === "input") break;
    await left.close();
    await assert.rejects(async () => {
        while (!(await talking.result(left.id)));
    }, ClientGoneError);

    const stop = new AbortController();
    const aborted = talking.run("input('? ')", {
        ...SOON,
        signal: stop.signal,
        onInput: () => stop.abort(new Error("enough")),
    });
    await assert.rejects(aborted, /enough/);
});

test("a conversation that is refused", async () => {
    const options = { ...SOON, onInput: () => "" };
    await assert.rejects(talking.run("1", { ...options, profile: "gpu" }), UnknownProfileError);
    const nobody = new Client({ WebSocket, baseUrl: "http://127.0.0.1:9" });
    await assert.rejects(nobody.run("1", options), NoServerError);
});
