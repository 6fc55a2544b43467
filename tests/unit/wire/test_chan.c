/* chan: what the socket does not take is kept and sent in order, descriptors with it; a dead peer
 * is told once. */

#include "base/fd.h"
#include "wire/chan.h"
#include "wire/fields.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static struct loop *loop;
static struct chan chan;
static int peer;
static struct timer stopper;
static unsigned messages, goners, drains, most_messages;

static void on_msg(struct chan *c, struct wire_in *in) {
    assert_ptr_equal(c, &chan);
    assert_int_equal(in->type, WIRE_W_END);
    assert_int_equal(wire_get_u64(in), messages);
    if (++messages == most_messages)
        chan_pause(c);
}

static void on_gone(struct chan *c, const struct err *why) {
    (void)c;
    assert_true(strlen(why->text) > 0);
    goners++;
}

static void on_drain(struct chan *c) {
    assert_int_equal(c->queued, 0);
    drains++;
}

static void on_stop(struct timer *t) {
    (void)t;
    loop_stop(loop);
}

static int setup(void **state) {
    struct err e;
    int pair[2];
    (void)state;
    messages = goners = drains = most_messages = 0;
    assert_int_equal(loop_new(&loop, &e), 0);
    assert_int_equal(wire_pair(pair, &e), 0);
    peer = pair[1];
    assert_int_equal(fd_set_nonblock(peer, &e), 0);
    chan = (struct chan){.fd = -1, .on_msg = on_msg, .on_gone = on_gone, .on_drain = on_drain};
    assert_int_equal(chan_init(&chan, loop, &pair[0], &e), 0);
    assert_int_equal(pair[0], -1);
    stopper = (struct timer){.fn = on_stop};
    return 0;
}

static int teardown(void **state) {
    (void)state;
    chan_done(&chan);
    fd_close(&peer);
    loop_free(loop);
    return 0;
}

/* A loop that was stopped stays stopped; every look takes a new one, with the same channel. */
static void run_once(void) {
    struct err e;
    loop_timer(loop, &stopper, 0);
    assert_int_equal(loop_run(loop, &e), 0);
}

static void renew_loop(void) {
    struct err e;
    uint32_t events = chan.watch.events;
    loop_unwatch(loop, &chan.watch);
    loop_free(loop);
    assert_int_equal(loop_new(&loop, &e), 0);
    chan.loop = loop;
    stopper.place = 0;
    if (!chan.gone)
        assert_int_equal(loop_watch(loop, &chan.watch, chan.fd, events, &e), 0);
}

static void put(struct wire_out *o, uint64_t number, size_t padding) {
    static const char nothing[4096];
    wire_begin(o, WIRE_W_END);
    wire_put_u64(o, number);
    for (; padding > 0; padding -= padding < sizeof nothing ? padding : sizeof nothing)
        wire_put_bytes(o, nothing, padding < sizeof nothing ? padding : sizeof nothing);
}

static void send_number(uint64_t number) {
    struct wire_out o;
    put(&o, number, 32768);
    chan_send(&chan, &o);
}

/* The next message at the peer; -1 when there is none. */
static int64_t take(struct wire_in *in) {
    struct err e;
    in->nfds = in->fd_at = 0;
    if (wire_recv(peer, in, &e) != WIRE_GOT)
        return -1;
    return (int64_t)wire_get_u64(in);
}

static void peer_sends(uint64_t number) {
    struct wire_out o;
    struct err e;
    put(&o, number, 0);
    assert_int_equal(wire_send(peer, &o, &e), WIRE_SENT);
}

static void whole_messages_arrive_in_order(void **state) {
    (void)state;
    for (uint64_t i = 0; i < 10; i++)
        peer_sends(i);
    run_once();
    assert_int_equal(messages, 10);
    assert_int_equal(goners, 0);
}

static void what_does_not_fit_waits_and_arrives_in_order(void **state) {
    struct wire_in in;
    (void)state;
    uint64_t sent = 0;
    while (chan.queued < 200000)
        send_number(sent++);
    assert_true(chan.head != NULL);
    uint64_t got = 0;
    for (int looks = 0; got < sent && looks < 1000; looks++) {
        while (got < sent && take(&in) == (int64_t)got) {
            wire_in_done(&in);
            got++;
        }
        renew_loop();
        run_once();
    }
    assert_int_equal(got, sent);
    assert_int_equal(chan.queued, 0);
    assert_true(drains >= 1);
    assert_int_equal(take(&in), -1);
}

/* It would have to be cut, and the peer could not tell. */
static void what_is_too_large_is_dropped_whole(void **state) {
    struct wire_in in;
    struct wire_out o;
    (void)state;
    uint64_t sent = 0;
    for (int behind_a_queue = 0; behind_a_queue < 2; behind_a_queue++) {
        while (behind_a_queue && !chan.head)
            send_number(sent++);
        size_t queued = chan.queued;
        put(&o, 99, 2 * WIRE_MAX);
        assert_true(o.bad);
        chan_send(&chan, &o);
        assert_int_equal(chan.queued, queued);
    }
    assert_int_equal(take(&in), 0);
    wire_in_done(&in);
    assert_int_equal(goners, 0);
}

static void the_queue_keeps_descriptors_that_their_owner_closed(void **state) {
    struct wire_in in;
    struct err e;
    (void)state;
    uint64_t sent = 0;
    while (!chan.head)
        send_number(sent++);
    int file;
    assert_int_equal(memfd_of("test", "hello", 5, &file, &e), 0);
    struct wire_out o;
    put(&o, sent, 0);
    wire_put_fd(&o, file);
    wire_put_fd(&o, file);
    chan_send(&chan, &o);
    fd_close(&file);
    bool seen = false;
    for (int looks = 0; !seen && looks < 1000; looks++) {
        for (int64_t n; !seen && (n = take(&in)) >= 0; wire_in_done(&in)) {
            if (n != (int64_t)sent)
                continue;
            seen = true;
            assert_int_equal(in.nfds, 2);
            AUTO_FD first = wire_take_fd(&in);
            AUTO_FD second = wire_take_fd(&in);
            char text[8];
            assert_int_equal(pread(first, text, sizeof text, 0), 5);
            assert_int_equal(pread(second, text, sizeof text, 0), 5);
        }
        renew_loop();
        run_once();
    }
    assert_true(seen);
}

static unsigned open_descriptors(void) {
    unsigned n = 0;
    struct stat st;
    for (int fd = 0; fd < 256; fd++)
        n += fstat(fd, &st) == 0;
    return n;
}

static void a_channel_that_ends_closes_what_it_kept(void **state) {
    struct err e;
    (void)state;
    unsigned before = open_descriptors();
    uint64_t sent = 0;
    while (!chan.head)
        send_number(sent++);
    int file;
    assert_int_equal(memfd_of("test", "hello", 5, &file, &e), 0);
    struct wire_out o;
    put(&o, sent, 0);
    wire_put_fd(&o, file);
    for (int i = 0; i < 5; i++)
        chan_send(&chan, &o);
    fd_close(&file);
    assert_int_equal(open_descriptors(), before + 5);
    chan_done(&chan);
    assert_int_equal(open_descriptors(), before - 1);
    assert_int_equal(chan.queued, 0);
    chan_send(&chan, &o); /* to nobody: not an error */
    chan_done(&chan);
}

static void a_peer_that_is_gone_is_told_once(void **state) {
    (void)state;
    peer_sends(0);
    fd_close(&peer);
    run_once();
    assert_int_equal(messages, 1); /* what it said before */
    assert_int_equal(goners, 1);
    renew_loop();
    run_once();
    send_number(1);
    chan_pump(&chan);
    assert_int_equal(goners, 1);
}

static void a_peer_that_dies_while_we_wait_to_send_is_told_once(void **state) {
    (void)state;
    while (!chan.head)
        send_number(0);
    fd_close(&peer);
    run_once();
    renew_loop();
    run_once();
    assert_int_equal(goners, 1);
}

static void nonsense_ends_the_channel(void **state) {
    (void)state;
    assert_int_equal(write(peer, "x", 1), 1);
    peer_sends(0);
    run_once();
    assert_int_equal(goners, 1);
    assert_int_equal(messages, 0);
}

static void a_paused_channel_reads_nothing_until_it_goes_on(void **state) {
    (void)state;
    most_messages = 3;
    for (uint64_t i = 0; i < 6; i++)
        peer_sends(i);
    run_once();
    assert_int_equal(messages, 3);
    renew_loop();
    run_once();
    assert_int_equal(messages, 3);
    chan_resume(&chan);
    renew_loop();
    run_once();
    assert_int_equal(messages, 6);
}

static void a_paused_channel_hears_of_its_peers_end(void **state) {
    (void)state;
    chan_pause(&chan);
    fd_close(&peer);
    run_once();
    assert_int_equal(goners, 1);
}

static void pause_it(struct watch *w, uint32_t events) {
    char byte;
    (void)events;
    assert_int_equal(read(w->fd, &byte, 1), 1);
    chan_pause(&chan);
}

static void a_message_of_the_turn_in_which_it_is_paused_waits(void **state) {
    struct watch first = {.fd = -1, .fn = pause_it};
    struct err e;
    int ends[2];
    (void)state;
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(loop_watch(loop, &first, ends[0], EPOLLIN, &e), 0);
    assert_int_equal(write(ends[1], "x", 1), 1); /* told of first */
    peer_sends(0);
    run_once();
    assert_int_equal(messages, 0);
    assert_int_equal(goners, 0);
    loop_unwatch(loop, &first);
    close(ends[0]);
    close(ends[1]);
    chan_resume(&chan);
    renew_loop();
    run_once();
    assert_int_equal(messages, 1);
}

static void one_wake_up_does_bounded_work(void **state) {
    (void)state;
    for (uint64_t i = 0; i < 100; i++)
        peer_sends(i);
    chan_pump(&chan);
    assert_true(messages > 0 && messages < 100);
    while (messages < 100) {
        unsigned before = messages;
        chan_pump(&chan);
        assert_true(messages > before);
    }
}

/* How many descriptors have come to the heir's other end. */
static unsigned inherited(int sock) {
    struct wire_in in;
    struct err e;
    unsigned n = 0;
    in.nfds = in.fd_at = 0;
    while (wire_recv(sock, &in, &e) == WIRE_GOT) {
        assert_int_equal(in.type, WIRE_I_LEFT);
        n += in.nfds;
        wire_in_done(&in);
    }
    return n;
}

static void peer_sends_files(unsigned n) {
    struct wire_out o;
    struct err e;
    put(&o, messages, 0);
    for (unsigned i = 0; i < n; i++)
        wire_put_fd(&o, STDIN_FILENO);
    assert_int_equal(wire_send(peer, &o, &e), WIRE_SENT);
}

static void what_nobody_wants_is_left_to_the_heir(void **state) {
    (void)state;
    struct err e;
    int pair[2];
    assert_int_equal(wire_pair(pair, &e), 0);
    assert_int_equal(fd_set_nonblock(pair[1], &e), 0);
    struct chan heir = {.fd = pair[0]};
    chan.heir = &heir;
    peer_sends_files(2);
    run_once();
    assert_int_equal(messages, 1);
    assert_int_equal(inherited(pair[1]), 2);
    peer_sends_files(1);
    chan_done(&chan); /* the socket itself: what is in it was not read */
    assert_int_equal(inherited(pair[1]), 1);
    fd_close_all(pair, 2);
}

static void the_heir_gets_what_is_too_much(void **state) {
    (void)state;
    struct err e;
    int pair[2], many[WIRE_ALL_FDS];
    assert_int_equal(wire_pair(pair, &e), 0);
    assert_int_equal(fd_set_nonblock(pair[1], &e), 0);
    struct chan heir = {.fd = pair[0]};
    chan.heir = &heir;
    for (unsigned i = 0; i < WIRE_ALL_FDS; i++)
        assert_true((many[i] = dup(STDIN_FILENO)) >= 0);
    fd_close(&many[7]);
    chan_leave(&chan, many, WIRE_ALL_FDS);
    assert_int_equal(many[0], -1);
    assert_int_equal(inherited(pair[1]), WIRE_ALL_FDS - 1);
    heir.gone = true;
    assert_true((many[0] = dup(STDIN_FILENO)) >= 0);
    chan_leave(&chan, many, 1);
    assert_int_equal(many[0], -1);
    assert_int_equal(inherited(pair[1]), 0);
    fd_close_all(pair, 2);
}

static bool is_open(int fd) {
    return fcntl(fd, F_GETFD) >= 0;
}

static void the_heir_hears_when_it_is_the_last(void **state) {
    (void)state;
    struct err e;
    struct wire_in in = {0};
    int pair[2], one = dup(STDIN_FILENO), number = one;
    assert_int_equal(wire_pair(pair, &e), 0);
    struct chan heir = {.fd = pair[0]};
    chan.heir = &heir;
    chan_leave(&chan, &one, 1);
    assert_false(is_open(number));
    assert_int_equal(wire_recv(pair[1], &in, &e), WIRE_GOT);
    assert_int_equal(in.nfds, 1);
    wire_in_done(&in);
    assert_int_equal(wire_recv(pair[1], &in, &e), WIRE_GOT);
    assert_int_equal(in.type, WIRE_I_LEFT);
    assert_int_equal(in.nfds, 0);
    fd_close_all(pair, 2);
}

/* They wait until there is room; one who sends more is not heard any more. */
static void what_the_heir_cannot_take_waits_for_it(void **state) {
    (void)state;
    struct err e;
    int pair[2], one;
    unsigned sent = 0, taken = 0;
    assert_int_equal(wire_pair(pair, &e), 0);
    assert_int_equal(fd_set_nonblock(pair[1], &e), 0);
    struct chan heir = {.on_msg = on_msg, .on_gone = on_gone};
    assert_int_equal(chan_init(&heir, loop, &pair[0], &e), 0);
    chan.heir = &heir;
    for (; !chan.gone; sent++) {
        assert_true((one = dup(STDIN_FILENO)) >= 0);
        chan_leave(&chan, &one, 1);
    }
    assert_int_equal(goners, 1);
    assert_true(heir.head && heir.left > 100 && heir.left < 200);
    for (unsigned now = 1; now; taken += now) {
        now = inherited(pair[1]);
        run_once();
    }
    assert_int_equal(taken, sent);
    assert_int_equal(heir.left, 0);
    chan_done(&heir);
    fd_close(&pair[1]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_heir_hears_when_it_is_the_last, setup, teardown),
        cmocka_unit_test_setup_teardown(what_the_heir_cannot_take_waits_for_it, setup, teardown),
        cmocka_unit_test_setup_teardown(what_nobody_wants_is_left_to_the_heir, setup, teardown),
        cmocka_unit_test_setup_teardown(the_heir_gets_what_is_too_much, setup, teardown),
        cmocka_unit_test_setup_teardown(whole_messages_arrive_in_order, setup, teardown),
        cmocka_unit_test_setup_teardown(what_does_not_fit_waits_and_arrives_in_order, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(what_is_too_large_is_dropped_whole, setup, teardown),
        cmocka_unit_test_setup_teardown(the_queue_keeps_descriptors_that_their_owner_closed, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_channel_that_ends_closes_what_it_kept, setup, teardown),
        cmocka_unit_test_setup_teardown(a_peer_that_is_gone_is_told_once, setup, teardown),
        cmocka_unit_test_setup_teardown(a_peer_that_dies_while_we_wait_to_send_is_told_once, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(nonsense_ends_the_channel, setup, teardown),
        cmocka_unit_test_setup_teardown(a_paused_channel_reads_nothing_until_it_goes_on, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_paused_channel_hears_of_its_peers_end, setup, teardown),
        cmocka_unit_test_setup_teardown(a_message_of_the_turn_in_which_it_is_paused_waits, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(one_wake_up_does_bounded_work, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
