// One connection, asynchronously: asio has the socket in its epoll before it connects.
#include <boost/asio.hpp>
#include <iostream>

using boost::asio::ip::tcp;

int main(int, char **argv) {
    boost::asio::io_context loop;
    tcp::resolver resolver(loop);
    tcp::socket sock(loop);
    std::string request = "GET / HTTP/1.0\r\nHost: " + std::string(argv[1]) + "\r\n\r\n", reply;
    boost::system::error_code last;
    boost::asio::async_connect(sock, resolver.resolve(argv[1], argv[2]),
                               [&](boost::system::error_code error, const tcp::endpoint &) {
        last = error;
        if (error)
            return;
        boost::asio::async_write(sock, boost::asio::buffer(request), [&](auto, size_t) {
            boost::asio::async_read(sock, boost::asio::dynamic_buffer(reply),
                                    [](auto, size_t) {});
        });
    });
    loop.run();
    std::cout << (last ? last.message() : reply.substr(0, 12)) << "\n";
    return last ? 1 : 0;
}
