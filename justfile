# Every recipe is a script that also runs without `just`.

# all tests, as the README says
test *ARGS:
    ./scripts/test {{ARGS}}

# what CI runs: format, lints, tests, documentation, licences
check:
    ./.ci/run

# hot paths beside their floor or limit, in one run
bench *PARTS:
    ./scripts/bench {{PARTS}}

# the small and statically linked program that is shipped and measured
release:
    ./scripts/release

# archives, installer, npm packages, checksums: what a release is made of
dist *ARGS:
    ./scripts/dist {{ARGS}}

# 500 kills during appends, thousands of sessions at once: minutes, not seconds
campaign:
    ./scripts/campaign

# the power is cut while checkpoints are made; root only
powercut:
    ./scripts/powercut

# what reads foreign bytes, three minutes each; needs a nightly toolchain
fuzz *TARGETS:
    ./scripts/fuzz {{TARGETS}}

# rewrite generated documentation and accept changed snapshots after a look at them
bless:
    SEGNO_BLESS=1 INSTA_UPDATE=always ./scripts/test -p segno -p segno-core -p segno-agents -p segno-engine -p segno-layouts
