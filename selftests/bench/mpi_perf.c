// SPDX-License-Identifier: GPL-2.0
/*
 * mpi_perf ELEMENTS ITERS WARMUP GAP_US FOLDER: MPI_Allreduce of floats. Writes
 * what each op took, in us, one a line, to FOLDER/RANK.out, after a line "ready".
 * Ends with 1 if a result is wrong.
 */
#include <err.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static FILE *open_log(const char *folder, int rank)
{
	char path[4096];
	FILE *log;

	snprintf(path, sizeof(path), "%s/%d.out", folder, rank);
	log = fopen(path, "w");
	if (!log)
		err(1, "%s", path);
	fputs("ready\n", log);
	fflush(log);
	return log;
}

static void fill(float *bucket, long n, float value)
{
	long i;

	for (i = 0; i < n; i++)
		bucket[i] = value;
}

static void check(const float *bucket, long n, float value)
{
	long i;

	for (i = 0; i < n; i++) {
		if (bucket[i] != value)
			errx(1, "%g is wrong", bucket[i]);
	}
}

int main(int argc, char **argv)
{
	int rank, size, iters, warmup, gap, i;
	float *in, *out;
	double begun;
	FILE *log;
	long n;

	MPI_Init(&argc, &argv);
	if (argc != 6)
		errx(2, "usage: mpi_perf ELEMENTS ITERS WARMUP GAP_US FOLDER");
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	n = atol(argv[1]);
	iters = atoi(argv[2]);
	warmup = atoi(argv[3]);
	gap = atoi(argv[4]);
	in = malloc(n * sizeof(*in));
	out = malloc(n * sizeof(*out));
	if (!in || !out)
		errx(1, "no memory");
	log = open_log(argv[5], rank);
	for (i = -warmup; i < iters; i++) {
		fill(in, n, (float)rank + 1);
		usleep(gap);
		begun = MPI_Wtime();
		MPI_Allreduce(in, out, (int)n, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
		if (i >= 0)
			fprintf(log, "%.0f\n", (MPI_Wtime() - begun) * 1e6);
		check(out, n, (float)(size * (size + 1)) / 2);
	}
	if (fclose(log))
		err(1, "can't write");
	MPI_Finalize();
	return 0;
}
