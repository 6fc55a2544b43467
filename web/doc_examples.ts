/*
 * The same request three times: for a shell, in Python with its standard library, in TypeScript with
 * fetch. Made from the specification, so they are as right as it is.
 */
import { Json } from "./common.js";
import {
  Body, bodyOf, examplePath, isSecured, isWebSocket, Operation, replyKind,
} from "./doc_operation.js";

export const LANGUAGES = ["curl", "Python", "TypeScript"] as const;
export type Language = (typeof LANGUAGES)[number];

export function example(op: Operation, language: Language): string {
  if (isWebSocket(op)) return socket(op, language);
  return { curl, Python: python, TypeScript: typescript }[language](op).join("\n");
}

function url(op: Operation): string {
  return location.origin + examplePath(op);
}

/* A shell. */

function quoted(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replace(/'/g, `'\\''`)}'`;
}

function curlBody(body: Body | null): string[] {
  if (!body) return [];
  if (body.kind === "form") return [`-F ${body.name}=@data.csv`];
  const header = `-H ${quoted(`Content-Type: ${body.type}`)}`;
  if (body.kind === "bytes") return [header, "--data-binary @data.bin"];
  return [header, `-d ${quoted(JSON.stringify(body.value))}`];
}

function curl(op: Operation): string[] {
  const plain: Record<string, string> = { get: "curl", head: "curl -I" };
  const reads = { json: [], text: [], none: [], stream: ["-N"], bytes: ["-o data.bin"] };
  const parts = [
    `${plain[op.method] ?? `curl -X ${op.method.toUpperCase()}`} ${quoted(url(op))}`,
    ...(isSecured(op) ? ['-H "Authorization: Bearer $CLOCHE_API_KEY"'] : []),
    ...curlBody(bodyOf(op)),
    ...reads[replyKind(op)],
  ];
  return [parts.join(" \\\n  ")];
}

/* Python. */

function pythonValue(value: Json, indent: string): string {
  if (value === null) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  if (typeof value !== "object") return JSON.stringify(value);
  const inner = Array.isArray(value)
    ? value.map((item) => pythonValue(item, `${indent}    `))
    : Object.entries(value).map(([k, v]) => `${JSON.stringify(k)}: ${pythonValue(v, `${indent}    `)}`);
  const [open, close] = Array.isArray(value) ? ["[", "]"] : ["{", "}"];
  return `${open}${inner.join(", ")}${close}`;
}

const PYTHON_READS = {
  json: ["    print(json.load(reply))"],
  text: ["    print(reply.read().decode())"],
  none: ["    print(reply.status)"],
  stream: ["    for line in reply:", '        print(line.decode(), end="")'],
  bytes: ['    open("data.bin", "wb").write(reply.read())'],
};

function pythonData(body: Body | null): string[] {
  if (!body) return [];
  if (body.kind === "json") return [`data = json.dumps(${pythonValue(body.value, "")}).encode()`];
  if (body.kind === "bytes") return ['data = open("data.bin", "rb").read()'];
  const disposition = `form-data; name="${body.name}"; filename="data.csv"`;
  return [
    'boundary = "cut-here"',
    `head = f'--{boundary}\\r\\nContent-Disposition: ${disposition}\\r\\n\\r\\n'`,
    'data = head.encode() + open("data.csv", "rb").read() + f"\\r\\n--{boundary}--\\r\\n".encode()',
  ];
}

function pythonHeaders(op: Operation, body: Body | null): string[] {
  const type = body?.kind === "form" ? 'f"multipart/form-data; boundary={boundary}"'
    : JSON.stringify(body?.type ?? "");
  return [
    ...(isSecured(op) ? ['"Authorization": "Bearer " + os.environ["CLOCHE_API_KEY"]'] : []),
    ...(body ? [`"Content-Type": ${type}`] : []),
  ];
}

function python(op: Operation): string[] {
  const body = bodyOf(op);
  const headers = pythonHeaders(op, body);
  const kind = replyKind(op);
  const words = [
    JSON.stringify(url(op)),
    ...(body ? ["data=data"] : []),
    ...(headers.length > 0 ? [`headers={${headers.join(", ")}}`] : []),
    `method="${op.method.toUpperCase()}"`,
  ];
  return [
    ...(body?.kind === "json" || kind === "json" ? ["import json"] : []),
    ...(isSecured(op) ? ["import os"] : []),
    "import urllib.request",
    "",
    ...pythonData(body),
    "request = urllib.request.Request(",
    ...words.map((word) => `    ${word},`),
    ")",
    "with urllib.request.urlopen(request) as reply:",
    ...PYTHON_READS[kind],
  ];
}

/* TypeScript. */

const TYPESCRIPT_READS = {
  json: ["console.log(await reply.json());"],
  text: ["console.log(await reply.text());"],
  none: ["console.log(reply.status);"],
  stream: [
    "const lines = reply.body!.pipeThrough(new TextDecoderStream()).getReader();",
    "for (let part = await lines.read(); !part.done; part = await lines.read())",
    "  console.log(part.value);",
  ],
  bytes: ["const bytes = new Uint8Array(await reply.arrayBuffer());"],
};

function typescriptBody(body: Body | null): string[] {
  if (!body) return [];
  if (body.kind === "json") return [`body: JSON.stringify(${JSON.stringify(body.value)})`];
  return [body.kind === "form" ? "body: form" : "body: bytes"];
}

function typescriptBefore(body: Body | null): string[] {
  if (body?.kind === "bytes") return ["const bytes = new Blob([\"…\"]);"];
  if (body?.kind !== "form") return [];
  return [
    "const form = new FormData();",
    `form.append("${body.name}", new Blob(["a,b\\n1,2\\n"]), "data.csv");`,
  ];
}

function typescript(op: Operation): string[] {
  const body = bodyOf(op);
  const headers = [
    ...(isSecured(op) ? ["Authorization: `Bearer ${key}`"] : []),
    ...(body && body.kind !== "form" ? [`"Content-Type": ${JSON.stringify(body.type)}`] : []),
  ];
  const options = [
    ...(op.method === "get" ? [] : [`method: "${op.method.toUpperCase()}"`]),
    ...(headers.length > 0 ? [`headers: { ${headers.join(", ")} }`] : []),
    ...typescriptBody(body),
  ];
  const where = JSON.stringify(url(op));
  const call = options.length > 0
    ? [`const reply = await fetch(${where}, {`, ...options.map((o) => `  ${o},`), "});"]
    : [`const reply = await fetch(${where});`];
  return [...typescriptBefore(body), ...call, ...TYPESCRIPT_READS[replyKind(op)]];
}

/* A WebSocket. */

function socket(op: Operation, language: Language): string {
  const where = JSON.stringify(url(op).replace(/^http/, "ws"));
  const key = 'additional_headers={"Authorization": "Bearer " + os.environ["CLOCHE_API_KEY"]}';
  if (language === "curl") return "# A WebSocket: see Python or TypeScript.";
  if (language === "Python")
    return [
      "import os",
      "",
      "from websockets.sync.client import connect  # pip install websockets",
      "",
      `with connect(${where}, ${key}) as socket:`,
      "    for message in socket:",
      "        print(message)",
    ].join("\n");
  return [
    `const socket = new WebSocket(${where});`,
    "socket.onmessage = (event) => console.log(event.data);",
  ].join("\n");
}
