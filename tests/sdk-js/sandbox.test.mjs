// Live sandboxes: cells, what they show, input, interrupts, kernels, life.

import assert from "node:assert/strict";
import { test } from "node:test";
import {
    Client,
    ExecutionFailedError,
    NameTakenError,
    Sandbox,
    SandboxGoneError,
    SandboxPausedError,
} from "cloche";

async function withBox(options, body) {
    const box = await Sandbox.create(options);
    try {
        await body(box);
    } finally {
        await box.close();
    }
}

test("variables stay, and the value of the last expression comes back", () =>
    withBox({ profile: "base" }, async (box) => {
        assert.equal((await box.run("x = 41")).text, null);
        const result = await box.run("print('hi')\nx + 1");
        assert.equal(result.text, "42");
        assert.equal(result.stdout, "hi\n");
        assert.equal(result.status, "ok");
        assert.equal(result.exitCode, 0);
        assert.equal(result.executionCount, 2);
        assert.equal(result.results[0].isMainResult, true);
        assert.ok(result.usage.wallMs >= 0 && result.usage.memoryPeakBytes > 0);
        assert.equal(result.check(), result);
    }));

test("what is put together from events is what the server says it was", () =>
    withBox({ profile: "base" }, async (box) => {
        const codes = [
            "from IPython.display import display, clear_output, HTML",
            "print('a'); display(HTML('<b>b</b>')); 1 + 1",
            "print('gone'); display(1); clear_output(); print('here')",
            "print('gone'); display(1); clear_output(wait=True); print('here'); display(2)",
            "d = display(1, display_id='d'); d.update(2); display(3)",
            "d.update(4)", // of an earlier cell: nothing of this one
            "clear_output(wait=True)",
            "import sys; print('e', file=sys.stderr); 1/0",
            "[1, 2]; 'last'",
        ];
        for (const code of codes) {
            const ours = await box.run(code);
            const theirs = await new Client().result(ours.id);
            assert.deepEqual(ours, theirs, code);
        }
    }));

test("a figure is bytes", () =>
    withBox({ profile: "data" }, async (box) => {
        const result = await box.run("import pandas as pd\npd.DataFrame({'a': [1, 3]}).plot()");
        const [figure, value] = result.results;
        assert.equal(value.text, result.text);
        assert.deepEqual([...figure.png.subarray(0, 4)], [0x89, 0x50, 0x4e, 0x47]);
        const table = await box.run("pd.DataFrame({'a': [1]})");
        assert.match(table.results[0].html, /<table/);
        const svg = await box.run("pd.Series([1, 2]).plot();", { formats: ["svg"] });
        assert.match(svg.results.find((shown) => shown.svg).svg, /<svg/);
    }));

test("code that fails is a result", () =>
    withBox({ profile: "base" }, async (box) => {
        const result = await box.run("1 / 0");
        assert.equal(result.ok, false);
        assert.equal(result.error.name, "ZeroDivisionError");
        assert.ok(result.error.traceback.length > 0);
        assert.throws(
            () => result.check(),
            (error) => {
                assert.ok(error instanceof ExecutionFailedError);
                assert.match(error.message, /status error: ZeroDivisionError: division by zero/);
                return error.result === result;
            },
        );
        const slow = await box.run("while True: pass", { timeoutMs: 300 });
        assert.equal(slow.status, "timeout");
        assert.equal(slow.limitHit, "time");
    }));

test("lines are told as they come", () =>
    withBox({ profile: "base" }, async (box) => {
        const lines = [];
        const seen = [];
        const result = await box.run(
            "import sys\nprint('a\\nb')\nprint('c', end='')\nsys.stderr.write('e\\n')\ndisplay(7)",
            {
                onStdout: (line) => lines.push(line),
                onStderr: async (line) => seen.push(line),
                onResult: (shown) => seen.push(shown.text),
            },
        );
        assert.deepEqual(lines, ["a", "b", "c"]);
        assert.deepEqual(seen.sort(), ["7", "e"]);
        assert.equal(result.stdout, "a\nb\nc");
    }));

test("a stream is read while the cell runs", () =>
    withBox({ profile: "base" }, async (box) => {
        const types = [];
        for await (const event of box.stream(
            "name = input('who? ')\nprint('hello', name)\nlen(name)",
        )) {
            types.push(event.type);
            if (event.type === "input") {
                assert.equal(event.prompt, "who? ");
                await box.answer("Ada"); // the cell waits for it: the stream is live
            }
            if (event.type === "end") {
                assert.equal(event.result.text, "3");
                assert.match(event.result.stdout, /hello Ada/);
            }
        }
        assert.equal(types[0], "start");
        assert.equal(types.at(-1), "end");
        assert.ok(types.includes("stdout") && types.includes("result"));
    }));

test("input() is answered, or ends, or is not allowed", () =>
    withBox({ profile: "base" }, async (box) => {
        const questions = [];
        const onInput = (question) => {
            questions.push([question.prompt, question.password]);
            return questions.length < 3 ? `answer ${questions.length}` : null;
        };
        const code =
            "import getpass\nprint(input('1? '))\nprint(getpass.getpass('2? '))\ninput('3? ')";
        const result = await box.run(code, { onInput });
        assert.deepEqual(questions, [
            ["1? ", false],
            ["2? ", true],
            ["3? ", false],
        ]);
        assert.match(result.stdout, /answer 1\n(.|\n)*answer 2/);
        assert.equal(result.error.name, "EOFError");
        assert.equal((await box.run("input()")).error.name, "EOFError");
        assert.equal((await box.run("input()", { stdin: "given\n" })).text, "'given'");
        await assert.rejects(
            box.run("input()", { onInput: () => Promise.reject(new Error("nobody is here")) }),
            /nobody is here/,
        );
        assert.equal((await box.run("'it goes on'")).text, "'it goes on'");
    }));

test("interrupt() keeps the variables", () =>
    withBox({ profile: "base" }, async (box) => {
        assert.equal(await box.interrupt(), false);
        const running = box.run("mark = 1\nprint('on', flush=True)\nwhile True: pass", {
            onStdout: () => box.interrupt(),
        });
        const result = await running;
        assert.equal(result.status, "interrupted");
        assert.equal((await box.run("mark")).text, "1");
    }));

test("a signal ends the cell, not the sandbox", () =>
    withBox({ profile: "base" }, async (box) => {
        const stop = new AbortController();
        const why = new Error("enough");
        let id;
        const running = box.run("kept = 5\nprint('on', flush=True)\nwhile True: pass", {
            timeoutMs: 60_000,
            signal: stop.signal,
            onEvent: (event) => (id ??= event.id),
            onStdout: () => stop.abort(why),
        });
        await assert.rejects(running, why);
        assert.equal((await box.run("kept")).text, "5");
        assert.equal((await new Client().result(id)).status, "interrupted"); // and no timeout
        await assert.rejects(box.run("1", { signal: AbortSignal.abort(why) }), why);
    }));

test("a reader that leaves interrupts the cell, unless it is to go on", () =>
    withBox({ profile: "base" }, async (box) => {
        const code = "import time\nprint('on', flush=True)\ntime.sleep(0.3)\ndone = 1";
        for await (const event of box.stream(code)) if (event.type === "stdout") break;
        assert.equal((await box.run("'done' in globals()")).text, "False");
        const fail = () => {
            throw new Error("a listener's");
        };
        await assert.rejects(box.run(code, { onStdout: fail }), /a listener's/);
        assert.equal((await box.run("'done' in globals()")).text, "False");
        const other = await box.kernels.create();
        await assert.rejects(other.run(code, { onStdout: fail }), /a listener's/);
        assert.equal((await other.run("'done' in globals()")).text, "False");
        for await (const event of box.stream(code, { onDisconnect: "continue" }))
            if (event.type === "stdout") break;
        assert.equal((await box.run("'done' in globals()")).text, "True");
    }));

test("kernels share files, not variables", () =>
    withBox({ profile: "base" }, async (box) => {
        const other = await box.kernels.create();
        await box.run("a = 1\nopen('f', 'w').write('shared')");
        const result = await other.run("'a' in globals(), open('f').read()");
        assert.equal(result.text, "(False, 'shared')");
        assert.equal(result.kernelId, other.id);
        assert.equal((await other.info()).executionCount, 1);
        assert.equal((await box.run("'a' in globals()", { kernelId: other.id })).text, "False");
        const all = await box.kernels.list().toArray();
        assert.deepEqual(
            all.map((kernel) => kernel.isDefault),
            [true, false],
        );
        await other.delete();
        assert.equal((await box.restart()).state, "idle");
        assert.equal((await box.run("'a' in globals()")).text, "False");
    }));

test("questions about a kernel", () =>
    withBox({ profile: "base" }, async (box) => {
        await box.run(
            "shared_value = [1, 2, 3]\ndef twice(x):\n    '''Doubles.'''\n    return 2 * x",
        );
        const { variables, total } = await box.variables();
        const found = variables.find((variable) => variable.name === "shared_value");
        assert.deepEqual([found.type, found.repr], ["list", "[1, 2, 3]"]);
        assert.ok(total >= 2);
        assert.deepEqual((await box.complete("shared_v")).matches, ["shared_value"]);
        const inspection = await box.inspect("twice", { detail: true });
        assert.ok(inspection.found);
        assert.match(inspection.data["text/plain"], /Doubles|return 2 \* x/);
    }));

test("environment, metadata, limits and life", async () => {
    const box = await Sandbox.create({
        profile: "base",
        env: { MY_NAME: "a_b" },
        metadata: { some_team: "blue_1" },
        limits: { memoryMb: 300, openFiles: 100 },
        ttlSeconds: 600,
        idleSeconds: 300,
        name: "sdk-js life",
    });
    assert.equal((await box.run("import os; os.environ['MY_NAME']")).text, "'a_b'");
    assert.equal((await box.run("os.environ['ONE_CELL']", { env: { ONE_CELL: "1" } })).text, "'1'");
    const info = await box.info();
    assert.deepEqual(info.metadata, { some_team: "blue_1" });
    assert.equal(info.limits.memoryMb, 300);
    assert.equal(info.ttlSeconds, 600);
    assert.equal(info.network, "none");
    const { sandboxes } = new Client();
    const listed = await sandboxes.list({ metadata: { some_team: "blue_1" } }).toArray();
    assert.deepEqual(
        listed.map(({ id }) => id),
        [box.id],
    );
    await assert.rejects(Sandbox.create({ name: "sdk-js life" }), NameTakenError);
    const changed = await box.update({
        metadata: { other: "1" },
        limits: { memoryMb: 400 },
        ttlSeconds: 900,
    });
    assert.deepEqual([changed.metadata, changed.limits.memoryMb], [{ other: "1" }, 400]);
    assert.equal((await box.pause()).state, "paused");
    await assert.rejects(box.run("1"), SandboxPausedError);
    assert.equal((await box.resume()).state, "running");
    assert.ok((await Sandbox.list().toArray()).some(({ id }) => id === box.id));
    assert.equal((await Sandbox.connect("sdk-js life")).id, box.id);
    const same = await Sandbox.connect(box.id);
    assert.equal((await same.run("1 + 1")).text, "2");
    await same.close();
    await box.close(); // gone is gone
    await assert.rejects(box.run("1"), (error) => {
        assert.ok(error instanceof SandboxGoneError);
        assert.equal(error.status, 410);
        assert.match(error.message, /deleted: make a new one/);
        assert.match(error.requestId, /^req_/);
        return true;
    });
});

test("a sandbox is disposed of", async () => {
    const box = await Sandbox.create({ profile: "base" });
    const dispose = Symbol.asyncDispose ?? Symbol.for("Symbol.asyncDispose");
    await box[dispose]();
    await assert.rejects(box.info(), SandboxGoneError);
});
