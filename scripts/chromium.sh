#!/bin/sh
# Brings Chromium for the page tests where the system's package manager may; says so where it may not.
for name in chromium chromium-browser google-chrome; do
    command -v "$name" >/dev/null 2>&1 && exit 0
done
if command -v apt-get >/dev/null 2>&1 && [ "$(id -u)" = 0 ]; then
    echo "installing Chromium for the page tests"
    (apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends \
        chromium fonts-dejavu-core fonts-noto-cjk) >/dev/null 2>&1 && exit 0
fi
echo "no Chromium: the page tests will not run; install it with your package manager" >&2
