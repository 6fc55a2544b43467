// What lies between a client and the server: it lets bytes through until it is told to stop.

import net from "node:net";

export async function startProxy(url) {
    const to = new URL(url);
    const open = new Set();
    const proxy = { posts: 0, lets: Infinity };

    const server = net.createServer((client) => {
        const upstream = net.connect(Number(to.port), to.hostname);
        const end = () => {
            client.destroy();
            upstream.destroy();
            open.delete(end);
        };
        open.add(end);
        for (const socket of [client, upstream]) {
            socket.on("error", end);
            socket.on("close", end);
        }
        client.on("data", (data) => {
            proxy.posts += data.toString("latin1").split("POST /").length - 1;
            upstream.write(data);
        });
        upstream.on("data", (data) => {
            const passed = data.subarray(0, proxy.lets);
            proxy.lets -= passed.length;
            client.write(passed, () => proxy.lets <= 0 && end());
        });
    });
    await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));

    // Ends every connection that there is; new ones are let through.
    proxy.cut = () => {
        for (const end of [...open]) end();
    };
    // Lets so many bytes of replies through, over all connections, then ends them.
    proxy.cutAfter = (bytes) => (proxy.lets = bytes);
    proxy.heal = () => (proxy.lets = Infinity);
    proxy.url = `http://127.0.0.1:${server.address().port}`;
    proxy.close = () => {
        proxy.cut();
        return new Promise((resolve) => server.close(resolve));
    };
    return proxy;
}
