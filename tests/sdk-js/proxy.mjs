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
    const listen = (port) => new Promise((resolve) => server.listen(port, "127.0.0.1", resolve));
    await listen(0);
    const { port } = server.address();

    // Ends every connection that there is; new ones are let through.
    proxy.cut = () => {
        for (const end of [...open]) end();
    };
    // Lets so many bytes of replies through, over all connections, then ends them.
    proxy.cutAfter = (bytes) => (proxy.lets = bytes);
    proxy.heal = () => (proxy.lets = Infinity);
    // Nobody is there, and somebody is again.
    proxy.down = () => proxy.close();
    proxy.up = () => listen(port);
    proxy.url = `http://127.0.0.1:${port}`;
    proxy.close = () => {
        proxy.cut();
        return new Promise((resolve) => server.close(resolve));
    };
    return proxy;
}
