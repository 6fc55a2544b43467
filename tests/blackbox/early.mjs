// node early.mjs URL BYTES CHUNKED [KEY]: posts so many bytes with fetch and prints the status.
const [url, bytes, chunked, key] = process.argv.slice(2);
const block = Buffer.alloc(1 << 20, "x");
const headers = { "content-type": "application/json", ...(key && { authorization: `Bearer ${key}` }) };

function stream() {
  let left = Number(bytes);
  return new ReadableStream({
    pull(to) {
      if (left <= 0) return to.close();
      to.enqueue(block.subarray(0, Math.min(left, block.length)));
      left -= block.length;
    },
  });
}

const body = chunked === "1" ? stream() : Buffer.alloc(Number(bytes), "x");
const reply = await fetch(url, { method: "POST", headers, body, duplex: "half" });
console.log(reply.status, (await reply.json()).error.code);
