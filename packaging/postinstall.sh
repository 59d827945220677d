#!/bin/sh
# Runs after an installation or upgrade: systemd reloads the units, and a running service restarts with the new version.
set -e
if [ -d /run/systemd/system ]; then
    systemctl daemon-reload
    systemctl try-restart kindling.service
fi
