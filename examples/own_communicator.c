/* A trainer among ranks that the program has started itself, over a communicator of its own: here two processes and a
 * pair of sockets between them. With MPI, exchange would be MPI_Irecv, MPI_Isend and MPI_Waitall on any communicator.
 *
 * Both end with the same weights, those of one process that makes both parts of every update.
 */
#include <mixt/mixt.h>

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { RANKS = 2, STEPS = 60, WEIGHTS = 10 * 64 };

static mixt_value net(mixt_builder *b, mixt_value x)
{
    x = mixt_relu(b, mixt_linear(b, "fc1", mixt_flatten(b, x), .features = 64));
    return mixt_linear(b, "fc2", x, .features = 10);
}

/** As much of a message as the socket takes or gives without waiting. */
static bool move(int socket, const mixt_message *m, size_t *done, bool out)
{
    char *at = (char *)m->data + *done;
    ssize_t moved = out ? send(socket, at, m->bytes - *done, MSG_DONTWAIT | MSG_NOSIGNAL)
                        : recv(socket, at, m->bytes - *done, MSG_DONTWAIT);
    if (moved > 0)
        *done += (size_t)moved;
    return moved > 0;
}

/** Both ways at once: each may have more to send than a socket holds. Of two ranks there is one peer. */
static mixt_status exchange(void *user, const mixt_message *out, int outs, const mixt_message *in, int ins,
                            double seconds)
{
    int socket = *(int *)user;
    size_t sent = 0, received = 0, to_send = outs ? out->bytes : 0, to_receive = ins ? in->bytes : 0;
    while (sent < to_send || received < to_receive) {
        struct pollfd wait = {.fd = socket};
        wait.events = (short)((sent < to_send ? POLLOUT : 0) | (received < to_receive ? POLLIN : 0));
        if (poll(&wait, 1, (int)(1000 * seconds)) <= 0)
            return MIXT_ERROR_STATE; // the other does not answer
        bool moved = false;
        if (wait.revents & POLLOUT)
            moved = move(socket, out, &sent, true);
        if (wait.revents & POLLIN)
            moved = move(socket, in, &received, false) || moved;
        if (!moved && (wait.revents & (POLLHUP | POLLERR)))
            return MIXT_ERROR_STATE; // the other is gone
    }
    return MIXT_OK;
}

static mixt_status last_weights(const mixt_trainer *t, float weights[WEIGHTS])
{
    mixt_param_info info;
    for (int64_t i = 0; i < mixt_trainer_param_count(t); i++)
        if (mixt_trainer_param(t, i, &info) == MIXT_OK && !strcmp(info.name, "fc2.weight"))
            return mixt_trainer_param_get(t, i, weights);
    return MIXT_ERROR_STATE;
}

/** Trains as one of the ranks, or as all of them where there is no communicator; the last layer's weights. */
static mixt_status train(const mixt_communicator *communicator, float weights[WEIGHTS])
{
    mixt_context *ctx = mixt_open(.device = "cpu", .threads = 1);
    mixt_model *model = mixt_model_new(ctx, net, MIXT_LOSS_CROSS_ENTROPY);
    mixt_trainer *t = mixt_trainer_new(model, .precision = "bf16", .batch = 32, .ranks = RANKS, .lr = 3e-3f);
    mixt_data *data = mixt_data_new(ctx, "digits:", .samples = 1600); // the same on every rank, each takes its part
    mixt_step step = {0};
    mixt_status status = communicator ? mixt_trainer_join(t, communicator, 30) : MIXT_OK;
    for (int i = 0; i < STEPS && status == MIXT_OK; i++)
        status = mixt_trainer_step(t, data, &step);
    if (status == MIXT_OK)
        status = last_weights(t, weights);
    if (status == MIXT_OK)
        printf("%s %d: loss %.4f after %d updates\n", communicator ? "rank" : "one process, ranks",
               communicator ? communicator->rank : RANKS, step.loss, STEPS);
    else
        fprintf(stderr, "%s\n", mixt_error(ctx));
    mixt_close(ctx);
    return status;
}

int main(void)
{
    static float ours[WEIGHTS], theirs[WEIGHTS], alone[WEIGHTS];
    int sockets[2], other = 1;
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, sockets))
        return 1;
    pid_t child = fork(); // before mixt begins: it has threads
    int rank = child == 0;
    close(sockets[!rank]);
    mixt_communicator communicator = {.rank = rank, .size = RANKS, .user = &sockets[rank], .exchange = exchange};
    mixt_status status = child < 0 ? MIXT_ERROR_STATE : train(&communicator, ours);
    if (rank) { // what rank 1 ended with goes to rank 0, to be compared
        mixt_message out = {.peer = 0, .data = ours, .bytes = sizeof ours};
        return status != MIXT_OK || exchange(&sockets[1], &out, 1, NULL, 0, 30) != MIXT_OK;
    }
    mixt_message in = {.peer = 1, .data = theirs, .bytes = sizeof theirs};
    if (status == MIXT_OK)
        status = exchange(&sockets[0], NULL, 0, &in, 1, 30);
    if (status == MIXT_OK)
        status = train(NULL, alone);
    waitpid(child, &other, 0);
    bool same = !memcmp(ours, theirs, sizeof ours) && !memcmp(ours, alone, sizeof ours);
    if (status == MIXT_OK && !other)
        printf("weights of both ranks and of one process: %s\n", same ? "the same bits" : "not the same");
    return status == MIXT_OK && !other && same ? 0 : 1;
}
