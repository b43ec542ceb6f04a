# Unpacks Debian's packages of any suite and architecture, for the scripts that source
# this. Needs apt, a Debian mirror in its sources, and $work, an empty folder.

# The mirror that apt is configured with has the other suites and architectures too.
mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Origin: Debian' 'Label: Debian' | head -n 1)
keyring=/usr/share/keyrings/debian-archive-keyring.gpg

# in_suite SUITE ARCHITECTURE COMMAND...: apt-get in a world of its own, in which this
# suite is the only source and nothing is installed, so that dependencies are fetched
# to the last.
in_suite() {
  local dir=$work/$1-$2
  apt-get -qq -o APT::Architecture="$2" -o APT::Architectures="$2" \
    -o APT::Sandbox::User=root -o APT::Install-Recommends=false \
    -o Dir::Etc::SourceList="$dir/sources.list" -o Dir::Etc::SourceParts=- \
    -o Dir::State="$dir" -o Dir::State::status="$dir/status" -o Dir::Cache="$dir/cache" "${@:3}" >/dev/null
}

# unpack SUITE ARCHITECTURE PACKAGE ROOT: the package and all that it depends on, into
# this folder, which is made anew.
unpack() {
  local suite=$1 architecture=$2 package=$3 root=$4 dir=$work/$1-$2
  if [ ! -d "$dir" ]; then
    mkdir -p "$dir/lists/partial" "$dir/cache/archives/partial"
    : >"$dir/status"
    echo "deb [signed-by=$keyring] $mirror $suite main" >"$dir/sources.list"
    in_suite "$suite" "$architecture" update
  fi
  rm -rf "$root" "$dir"/cache/archives/*.deb
  in_suite "$suite" "$architecture" install -y --download-only "$package"

  mkdir -p "$root"/usr/{bin,sbin,lib,lib64}
  ln -s usr/bin usr/sbin usr/lib usr/lib64 "$root"
  local deb
  for deb in "$dir"/cache/archives/*.deb; do
    # A package that still has /lib goes into /usr/lib.
    dpkg-deb --fsys-tarfile "$deb" | tar --extract --keep-directory-symlink --directory "$root"
  done
}
