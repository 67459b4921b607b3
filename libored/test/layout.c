// SPDX-License-Identifier: GPL-2.0
/* The ABI's sizes, as C sees them, for layout.py to compare with. */
#include <stddef.h>
#include <stdio.h>
#include <ored.h>

#define SIZE(type) printf(#type " %zu\n", sizeof(struct type))
#define NUMBER(name) printf(#name " %u\n", (unsigned int)(name))

int main(void)
{
	SIZE(ored_join);
	SIZE(ored_peer);
	SIZE(ored_op);
	SIZE(ored_result);
	SIZE(ored_group);
	SIZE(ored_peer_state);
	SIZE(ored_policy);
	SIZE(ored_uncounted);
	NUMBER(SOL_ORED);
	NUMBER(ORED_FAMILY_DEFAULT);
	NUMBER(ORED_MAX_RANKS);
	NUMBER(ORED_MAX_DEPTH);
	NUMBER(ORED_MAX_BUCKET);
	NUMBER(ORED_PORT_DEFAULT);
	NUMBER(ORED_TIMEOUT_DEFAULT);
	NUMBER(ORED_ERROR_MAX);
	NUMBER(ORED_CNT_MAX);
	NUMBER(ORED_JOIN);
	NUMBER(ORED_OP);
	NUMBER(ORED_RESULT);
	NUMBER(ORED_RESULTS);
	NUMBER(ORED_ERROR);
	NUMBER(ORED_GROUP);
	NUMBER(ORED_PEERS);
	NUMBER(ORED_STATS);
	NUMBER(ORED_POLICY);
	NUMBER(ORED_UNCOUNTED);
	NUMBER(ORED_PEER_STALLED);
	NUMBER(ORED_RESULT_RESYNC);
	return 0;
}
