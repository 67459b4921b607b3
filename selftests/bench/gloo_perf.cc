// SPDX-License-Identifier: GPL-2.0
/*
 * gloo_perf ring|bcube ELEMENTS ITERS WARMUP GAP_US STORE: Gloo's allreduce of
 * floats. Rank and size come from ORED_RANK and ORED_SIZE; STORE is a folder where
 * the ranks find each other. Prints "ready" once they have, then what each op
 * took, in us, one a line. Ends with 1 if a result is wrong.
 */
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>
#include <err.h>
#include <unistd.h>
#include <gloo/allreduce.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>

using impl = gloo::detail::AllreduceOptionsImpl;

static long run(const std::shared_ptr<gloo::Context> &context, impl::Algorithm algorithm,
		std::vector<float> &bucket)
{
	gloo::AllreduceOptions options(context);

	options.setOutput(bucket.data(), bucket.size());
	options.setAlgorithm(algorithm);
	options.setReduceFunction([](void *c, const void *a, const void *b, size_t n) {
		gloo::sum<float>(c, a, b, n);
	});
	auto begun = std::chrono::steady_clock::now();
	gloo::allreduce(options);
	return std::chrono::duration_cast<std::chrono::microseconds>(
		std::chrono::steady_clock::now() - begun).count();
}

int main(int argc, char **argv)
{
	const char *rank_text = getenv("ORED_RANK"), *size_text = getenv("ORED_SIZE");

	if (argc != 7 || !rank_text || !size_text)
		errx(2, "usage: gloo_perf ring|bcube ELEMENTS ITERS WARMUP GAP_US STORE");
	int rank = atoi(rank_text), size = atoi(size_text);
	auto algorithm = std::string(argv[1]) == "bcube" ? impl::BCUBE : impl::RING;
	std::vector<float> bucket(atol(argv[2]));
	int iters = atoi(argv[3]), warmup = atoi(argv[4]), gap = atoi(argv[5]);
	gloo::transport::tcp::attr attr;

	attr.iface = "eth0";
	attr.ai_family = AF_UNSPEC;
	auto device = gloo::transport::tcp::CreateDevice(attr);
	gloo::rendezvous::FileStore store(argv[6]);
	auto context = std::make_shared<gloo::rendezvous::Context>(rank, size);

	context->connectFullMesh(store, device);
	puts("ready");
	fflush(stdout);
	for (int i = -warmup; i < iters; i++) {
		bucket.assign(bucket.size(), rank + 1.0f);
		usleep(gap);
		long us = run(context, algorithm, bucket);

		for (float value : bucket) {
			if (value != size * (size + 1) / 2.0f)
				errx(1, "rank %d: op %d: %g is wrong", rank, i, value);
		}
		if (i >= 0)
			printf("%ld\n", us);
	}
	return 0;
}
