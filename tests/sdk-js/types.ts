// A user's program: what the types promise is what comes.

import { Sandbox, type ExecutionEvent, type Network, type Result } from "cloche";

async function main(): Promise<void> {
  await using box = await Sandbox.create({ profile: "base", limits: { memoryMb: 256 } });
  const result: Result = await box.run("print('hi')\n1 + 5");
  const usage: number = result.usage.cpuMs + result.usage.memoryPeakBytes;
  const name: string | undefined = result.error?.name;
  const png: Uint8Array | undefined = result.results[0]?.png;
  const network: Network = {
    allow: ["pypi.org:443", { domain: "*.example.org" }],
    strictTls: true,
  };
  const texts: string[] = [];
  for await (const event of box.stream("'x'")) texts.push(describe(event));
  const entries = await box.files.list().toArray();
  const sizes: number[] = entries.map((entry) => entry.sizeBytes);
  void [usage, name, png, network, texts, sizes];
  console.log(result.text, result.stdout.trim());
}

function describe(event: ExecutionEvent): string {
  switch (event.type) {
    case "stdout":
    case "stderr":
      return event.text;
    case "result":
    case "display":
      return event.result.text ?? "";
    case "input":
      return event.prompt;
    case "error":
      return event.error.value;
    case "end":
      return event.result.status;
    default:
      return event.type;
  }
}

await main();
