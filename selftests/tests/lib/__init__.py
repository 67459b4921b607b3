# SPDX-License-Identifier: GPL-2.0
"""Helpers of the kselftests: thin on purpose, so that the tests check the ABI itself."""
