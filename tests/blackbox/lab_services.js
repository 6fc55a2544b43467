// JupyterLab's own client library against a server: argv is its URL, where the library is, and a key.
// Prints what it saw, as JSON.
"use strict";

const [, , url, where, token] = process.argv;
const path = require("path");
const modules = path.join(where, "..", "..");
const lab = require(where);
const WebSocket = require(path.join(modules, "ws"));

async function main() {
  const settings = lab.ServerConnection.makeSettings({
    baseUrl: url,
    wsUrl: url.replace("http", "ws"),
    token,
    appendToken: Boolean(token),
    WebSocket,
    fetch,
    Request,
    Headers,
  });
  const found = {};
  const specs = await lab.KernelSpecAPI.getSpecs(settings);
  found.specs = [specs.default, ...Object.keys(specs.kernelspecs)];
  const manager = new lab.KernelManager({ serverSettings: settings });
  const kernel = await manager.startNew({ name: "python3" });
  found.info = (await kernel.info).language_info.name;

  const run = async (code, onMessage) => {
    const future = kernel.requestExecute({ code, allow_stdin: true });
    const seen = [];
    future.onIOPub = (message) => {
      seen.push(message);
      if (onMessage) onMessage(message);
    };
    future.onStdin = () => kernel.sendInputReply({ status: "ok", value: "typed" }, {});
    const reply = await future.done;
    return { reply: reply.content, seen };
  };
  const result = (ran) =>
    ran.seen.find((m) => m.header.msg_type === "execute_result").content.data["text/plain"];

  const first = await run("print('hello')\nnumber = 42\nnumber");
  found.text = first.seen.filter((m) => m.header.msg_type === "stream").map((m) => m.content.text).join("");
  found.result = result(first);
  found.input = result(await run("input('? ')"));
  const completed = await kernel.requestComplete({ code: "numb", cursor_pos: 4 });
  found.matches = completed.content.matches;

  const broken = await run("print('on', flush=True)\nwhile True: pass", (message) => {
    if (message.header.msg_type === "stream") kernel.interrupt();
  });
  found.interrupted = broken.reply.ename;

  await run(
    "from comm import get_comm_manager\n" +
      "def target(comm, message):\n" +
      "    comm.on_msg(lambda m: comm.send(m['content']['data'], buffers=m['buffers']))\n" +
      "get_comm_manager().register_target('echo', target)"
  );
  const comm = kernel.createComm("echo");
  const echoed = new Promise((resolve) => {
    comm.onMsg = (message) =>
      resolve({
        data: message.content.data,
        bytes: [...new Uint8Array(message.buffers[0].buffer ?? message.buffers[0])],
      });
  });
  comm.open({});
  comm.send({ b: 2 }, {}, [new Uint8Array([1, 2, 3]).buffer]);
  found.echo = { data: (await echoed).data, bytes: (await echoed).bytes.slice(-3) };

  await kernel.restart();
  await kernel.info;
  found.restarted = (await run("number")).reply.ename;

  const sessions = new lab.SessionManager({ kernelManager: manager, serverSettings: settings });
  const session = await sessions.startNew({
    path: "a.ipynb",
    name: "a",
    type: "notebook",
    kernel: { name: "python3" },
  });
  found.sessions = (await lab.SessionAPI.listRunning(settings)).length;
  await session.shutdown();
  await kernel.shutdown();
  found.after = await lab.KernelAPI.listRunning(settings);
  console.log(JSON.stringify(found));
  process.exit(0);
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
