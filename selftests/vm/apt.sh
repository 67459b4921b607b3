# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# shellcheck disable=SC2154 # see 'Needs' below
#
# Fetches Debian packages without installing them, with an apt state of our
# own: nothing of the machine's package lists or database changes, and suites
# that the machine doesn't use (backports) can be read. Where packages come
# from is the machine's own apt configuration; signatures are checked as ever.
#
# Needs: $cache, die().

apt_conf=$cache/apt/apt.conf

# The base URI under which the machine finds a suite whose name matches $1.
# apt parses its own sources; --print-uris also works before any update.
apt_base() {
	apt-get update --print-uris 2>/dev/null |
		sed -nE "s,^'([^']*)/dists/($1)/InRelease'.*,\1,p" | head -n 1
}

# Writes sources for the suites of Debian release $1.
apt_sources() {
	local release=$1 archive security key=
	archive=$(apt_base "$release|bookworm|trixie|stable|oldstable|testing|sid")
	security=$(apt_base '[a-z]+-security')
	[ -n "$archive" ] ||
		die "apt knows no Debian archive: see /etc/apt/sources.list"
	[ ! -f /usr/share/keyrings/debian-archive-keyring.gpg ] ||
		key='[signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] '
	echo "deb $key$archive $release main"
	echo "deb $key$archive $release-backports main"
	[ -z "$security" ] || echo "deb $key$security $release-security main"
}

# Sets up the private state for Debian release $1 and reads the package lists, also
# those of the other architecture $2, if there is one.
apt_update() {
	local dir=$cache/apt
	mkdir -p "$dir"/{lists/partial,archives/partial}
	: >"$dir/status"
	apt_sources "$1" >"$dir/sources.list"
	cat >"$apt_conf" <<-CONF
	APT::Architectures { "$(dpkg --print-architecture)"; ${2:+"\"$2\";"} };
	Dir::State "$dir";
	Dir::State::lists "$dir/lists";
	Dir::State::status "$dir/status";
	Dir::Cache "$dir";
	Dir::Cache::archives "$dir/archives";
	Dir::Etc::sourcelist "$dir/sources.list";
	Dir::Etc::sourceparts "/dev/null";
	Dir::Etc::preferences "/dev/null";
	Dir::Etc::preferencesparts "/dev/null";
	APT::Sandbox::User "$(id -un)";
	Acquire::Languages "none";
	Acquire::Retries "3";
	// The machine's hooks are about the machine's state.
	#clear APT::Update::Pre-Invoke;
	#clear APT::Update::Post-Invoke;
	#clear APT::Update::Post-Invoke-Success;
	CONF
	apt-get -c "$apt_conf" -qq update >&2 </dev/null ||
		die "can't read package lists from $(sed -n 's/^deb .*\(http[^ ]*\) .*/\1/p' \
			"$dir/sources.list" | sort -u | tr '\n' ' ')"
}

# Names of all packages that match the extended regular expression $1.
apt_names() {
	apt-cache -c "$apt_conf" pkgnames | grep -xE "$1" || true
}

# The newest version of package $1.
apt_newest() {
	apt-cache -c "$apt_conf" madison "$1" |
		awk -F ' *[|] *' '{ print $2 }' | sort -rV | head -n 1
}

# Packages that $1 in version $2 depends on and whose names match $3.
apt_depends() {
	apt-cache -c "$apt_conf" show "$1=$2" | sed -n 's/^Depends: //p' |
		tr ',' '\n' | sed 's/^ *//; s/[ (].*//' | grep -xE "$3" || true
}

# Downloads NAME=VERSION... into folder $1.
apt_download() {
	local dir=$1
	shift
	(cd "$dir" && apt-get -c "$apt_conf" -qq download "$@" >&2 </dev/null) ||
		die "can't download $*"
}
