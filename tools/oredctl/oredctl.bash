# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Completion of oredctl's words in bash.

_oredctl() {
	local cur prev words cword word object='' verb=''
	_init_completion || return

	for word in "${words[@]:1:cword-1}"; do
		case $word in
		-*) ;;
		*)
			if [ -z "$object" ]; then
				object=$word
			elif [ -z "$verb" ]; then
				verb=$word
			fi
			;;
		esac
	done
	case $prev in
	-n|-netns|--netns)
		mapfile -t COMPREPLY < <(compgen -W "$(ip netns list 2>/dev/null |
			cut -d' ' -f1)" -- "$cur")
		return
		;;
	mode)
		mapfile -t COMPREPLY < <(compgen -W 'bounded reliable' -- "$cur")
		return
		;;
	deadline)
		mapfile -t COMPREPLY < <(compgen -W 'loss p95' -- "$cur")
		return
		;;
	incast)
		mapfile -t COMPREPLY < <(compgen -W 'all adapt' -- "$cur")
		return
		;;
	hadamard)
		mapfile -t COMPREPLY < <(compgen -W 'auto on off' -- "$cur")
		return
		;;
	uid)
		mapfile -t COMPREPLY < <(compgen -u -- "$cur")
		return
		;;
	esac
	mapfile -t COMPREPLY < <(compgen -W "$(_oredctl_words "$object" "$verb")" -- "$cur")
}

# What may stand behind an object and a verb.
_oredctl_words() {
	local policy='loss-skip loss-halt min-ranks mode deadline incast hadamard loss-target
		floor ceiling warmup bound-us wait-ppm floor-us ceiling-us'
	case $1:$2 in
	:) echo '--json --pretty --details --netns --version --help
		group peer stat monitor' ;;
	group:add) echo "epoch bucket peers depth port timeout-ms payload-max uid
		policy $policy" ;;
	group:set) echo "epoch rank policy $policy" ;;
	group:delete) echo 'epoch' ;;
	group:) echo 'show add delete set help' ;;
	peer:|stat:) echo 'show help' ;;
	group:*|peer:*|stat:*) echo 'epoch rank' ;;
	monitor:) echo 'help' ;;
	esac
}

complete -F _oredctl oredctl
