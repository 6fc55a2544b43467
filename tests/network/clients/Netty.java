import io.netty.bootstrap.Bootstrap;
import io.netty.channel.Channel;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInitializer;
import io.netty.channel.EventLoopGroup;
import io.netty.channel.SimpleChannelInboundHandler;
import io.netty.channel.nio.NioEventLoopGroup;
import io.netty.channel.socket.nio.NioDatagramChannel;
import io.netty.channel.socket.nio.NioSocketChannel;
import io.netty.handler.codec.http.DefaultFullHttpRequest;
import io.netty.handler.codec.http.FullHttpRequest;
import io.netty.handler.codec.http.FullHttpResponse;
import io.netty.handler.codec.http.HttpClientCodec;
import io.netty.handler.codec.http.HttpMethod;
import io.netty.handler.codec.http.HttpObjectAggregator;
import io.netty.handler.codec.http.HttpVersion;
import io.netty.resolver.AddressResolverGroup;
import io.netty.resolver.DefaultAddressResolverGroup;
import io.netty.resolver.dns.DnsAddressResolverGroup;
import io.netty.resolver.dns.DnsServerAddressStreamProviders;
import java.net.InetSocketAddress;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;

/** A page by netty's NIO (its own epoll needs timerfd); names by the JDK's resolver, then by
 * netty's. */
public class Netty {
    static class Page extends SimpleChannelInboundHandler<FullHttpResponse> {
        final CompletableFuture<String> status = new CompletableFuture<>();

        @Override
        protected void channelRead0(ChannelHandlerContext context, FullHttpResponse reply) {
            status.complete(reply.status().toString());
            context.close();
        }

        @Override
        public void exceptionCaught(ChannelHandlerContext context, Throwable error) {
            status.completeExceptionally(error);
        }
    }

    static String ask(
            EventLoopGroup loop, AddressResolverGroup<InetSocketAddress> names, String host, int port)
            throws Exception {
        Page page = new Page();
        Bootstrap bootstrap = new Bootstrap().group(loop).channel(NioSocketChannel.class);
        bootstrap.resolver(names).handler(new ChannelInitializer<Channel>() {
            @Override
            protected void initChannel(Channel channel) {
                channel.pipeline().addLast(
                        new HttpClientCodec(), new HttpObjectAggregator(1 << 20), page);
            }
        });
        FullHttpRequest request =
                new DefaultFullHttpRequest(HttpVersion.HTTP_1_1, HttpMethod.GET, "/");
        request.headers().set("Host", host);
        bootstrap.connect(host, port).sync().channel().writeAndFlush(request);
        return page.status.get(20, TimeUnit.SECONDS);
    }

    public static void main(String[] args) throws Exception {
        EventLoopGroup loop = new NioEventLoopGroup(1);
        for (AddressResolverGroup<InetSocketAddress> names : List.of(
                DefaultAddressResolverGroup.INSTANCE,
                new DnsAddressResolverGroup(
                        NioDatagramChannel.class,
                        DnsServerAddressStreamProviders.platformDefault())))
            System.out.println(ask(loop, names, args[0], Integer.parseInt(args[1])));
        loop.shutdownGracefully(0, 1, TimeUnit.SECONDS).sync();
    }
}
