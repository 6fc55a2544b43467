// Files of live sandboxes, and those that outlive them.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { createReadStream } from "node:fs";
import fs from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { after, before, test } from "node:test";
import {
    BadArgumentError,
    BadPathError,
    Client,
    DiskFullError,
    NoFileError,
    NoSuchPathError,
    NotEmptyError,
    PathTakenError,
    Sandbox,
} from "cloche";

let box;
before(async () => (box = await Sandbox.create({ profile: "base", limits: { diskMb: 64 } })));
after(() => box.close());

test("text and bytes go in and come out", async () => {
    assert.deepEqual(await box.files.write("a.txt", "h€llo"), { path: "a.txt", sizeBytes: 7 });
    assert.equal(await box.files.readText("a.txt"), "h€llo");
    assert.equal((await box.run("open('a.txt').read()")).text, "'h€llo'");
    const bytes = new Uint8Array(256).map((_, i) => i);
    await box.files.write("deep/in/b.bin", bytes);
    assert.deepEqual(await box.files.read("/workspace/deep/in/b.bin"), bytes);
    assert.deepEqual([...(await box.files.read("deep/in/b.bin", { start: 2, end: 4 }))], [2, 3]);
    assert.deepEqual([...(await box.files.read("deep/in/b.bin", { start: 254 }))], [254, 255]);
    await box.files.write("blob", new Blob(["of a blob"]));
    await box.files.write("buffer", bytes.buffer);
    assert.equal((await box.files.read("buffer")).length, 256);
    await box.files.write("odd näme % ? #.txt", "x", { mode: "0755" });
    assert.equal(
        (await box.run("import os; oct(os.stat('odd näme % ? #.txt').st_mode & 0o777)")).text,
        "'0o755'",
    );
});

test("streams go both ways", async () => {
    const directory = await fs.mkdtemp(path.join(os.tmpdir(), "cloche-"));
    try {
        const local = path.join(directory, "large");
        const n = 20 << 20;
        await fs.writeFile(local, Buffer.alloc(n, "0123456789abcde\n"));
        await box.files.write("large", createReadStream(local)); // a Node stream
        await box.files.write("large2", Readable.toWeb(createReadStream(local)));
        const same = await box.run(
            "import os\nos.path.getsize('large'), open('large').read() == open('large2').read()",
        );
        assert.equal(same.text, `(${n}, True)`);
        const copy = path.join(directory, "copy");
        await pipeline(
            Readable.fromWeb(await box.files.stream("large")),
            (await fs.open(copy, "w")).createWriteStream(),
        );
        assert.ok((await fs.readFile(copy)).equals(await fs.readFile(local)));
        async function* pieces() {
            yield "of ";
            yield new TextEncoder().encode("pieces");
        }
        await box.files.write("pieces", pieces());
        assert.equal(await box.files.readText("pieces"), "of pieces");
    } finally {
        await fs.rm(directory, { recursive: true });
    }
});

test("a stream that is left in the middle", async () => {
    await box.files.write("long", new Uint8Array(8 << 20));
    const stream = await box.files.stream("long");
    const reader = stream.getReader();
    assert.ok((await reader.read()).value.length > 0);
    await reader.cancel();
    assert.equal((await box.files.read("long", { end: 10 })).length, 10);
});

test("directories", async () => {
    await box.files.write("tree/x/1", "1");
    await box.files.write("tree/x/2", "22");
    await box.files.mkdir("tree/empty");
    const names = async (options) =>
        (await box.files.list("tree", options).toArray()).map((entry) => [
            entry.path,
            entry.type,
            entry.sizeBytes,
        ]);
    assert.deepEqual(
        (await names()).map(([name, type]) => [name, type]),
        [
            ["tree/empty", "directory"],
            ["tree/x", "directory"],
        ],
    );
    const all = await names({ recursive: true });
    assert.deepEqual(
        all.filter(([, type]) => type === "file"),
        [
            ["tree/x/1", "file", 1],
            ["tree/x/2", "file", 2],
        ],
    );
    assert.equal((await box.files.move("tree/x/1", "tree/y")).path, "tree/y");
    assert.equal((await box.files.chmod("tree/y", "0700")).mode, "0700");
    assert.equal(await box.files.exists("tree/y"), true);
    assert.equal(await box.files.exists("tree"), true);
    assert.equal(await box.files.exists("tree/x/1"), false);
    await assert.rejects(box.files.delete("tree"), NotEmptyError);
    await assert.rejects(box.files.move("tree/y", "tree/x/2"), PathTakenError);
    await box.files.delete("tree", { recursive: true });
    await assert.rejects(box.files.read("tree/y"), NoSuchPathError);
});

test("a listing has all of its pages", async () => {
    await box.run(
        "import os\nos.mkdir('many')\nfor i in range(2100): open(f'many/{i:04}', 'w').close()",
    );
    const names = (await box.files.list("many").toArray()).map((entry) => entry.name);
    assert.equal(names.length, 2100);
    assert.equal(new Set(names).size, 2100);
    await box.files.delete("many", { recursive: true });
});

test("a directory as an archive", async () => {
    await box.files.write("packed/in/a", "A");
    const tar = spawn("tar", ["-tz"], { stdio: ["pipe", "pipe", "inherit"] });
    const archive = await box.files.downloadArchive("packed");
    await pipeline(Readable.fromWeb(archive), tar.stdin);
    const names = await new Response(Readable.toWeb(tar.stdout)).text();
    assert.match(names, /^in\/a$/m);
    const copied = await box.files.uploadArchive("copy", await box.files.downloadArchive("packed"));
    assert.deepEqual(copied, { files: 1, sizeBytes: 1 });
    assert.equal(await box.files.readText("copy/in/a"), "A");
});

test("paths that lead elsewhere are refused before they are sent", async () => {
    await assert.rejects(box.files.read("../../x"), BadArgumentError);
    await assert.rejects(box.files.write("a/../b", ""), BadArgumentError);
    await assert.rejects(Sandbox.connect(".."), BadArgumentError);
    await assert.rejects(
        box.files.write("/etc/passwd", ""),
        (e) => e instanceof BadPathError || e instanceof BadArgumentError,
    );
});

test("what does not fit is refused, and nothing changes", async () => {
    await box.files.write("kept", "old");
    await assert.rejects(box.files.write("kept", new Uint8Array(80 << 20)), DiskFullError);
    assert.equal(await box.files.readText("kept"), "old");
});

test("files of a new sandbox, small and large", async () => {
    const large = new Uint8Array(3 << 20).fill(7);
    const client = new Client();
    const stored = await client.files.upload("s.txt", "stored");
    const other = await client.sandboxes.create({
        profile: "base",
        files: {
            "t.txt": "text",
            "in/b": new Uint8Array([0, 255]),
            large,
            "s.txt": { fileId: stored.fileId },
        },
    });
    try {
        const code =
            "open('t.txt').read(), open('in/b', 'rb').read(), len(open('large', 'rb').read()), open('s.txt').read()";
        assert.equal(
            (await other.run(code)).text,
            `('text', b'\\x00\\xff', ${large.length}, 'stored')`,
        );
    } finally {
        await other.close();
    }
});

test("the store", async () => {
    const { files } = new Client();
    const one = await files.upload('na"me.txt', "one");
    assert.equal(one.sizeBytes, 3);
    async function* pieces() {
        for (let i = 0; i < 64; i++) yield new Uint8Array(1 << 16).fill(i);
    }
    const two = await files.upload("two", pieces());
    assert.equal(two.sizeBytes, 4 << 20);
    assert.equal(new TextDecoder().decode(await files.read(one.fileId)), "one");
    const back = await new Response(await files.stream(two.fileId)).arrayBuffer();
    assert.equal(back.byteLength, 4 << 20);
    const listed = (await files.list().toArray()).map((file) => file.fileId);
    assert.ok(listed.includes(one.fileId) && listed.includes(two.fileId));
    await files.delete(one.fileId);
    await files.delete(two.fileId);
    await assert.rejects(files.read(one.fileId), NoFileError);
});
