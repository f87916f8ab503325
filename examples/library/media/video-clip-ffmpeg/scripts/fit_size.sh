#!/usr/bin/env bash
# Encode a video so that it fits a size limit, in two passes (H.264, AAC).
#   fit_size.sh [--print] INPUT OUTPUT MEGABYTES [SECONDS]
#   --print    show the commands, run nothing
#   SECONDS    duration, when ffprobe is not available
set -euo pipefail

if [ "${1:-}" = "--help" ]; then
    sed -n '2,5s/^# \{0,1\}//p' "$0"
    exit 0
fi
run() { "$@"; }
if [ "${1:-}" = "--print" ]; then
    run() { printf '%q ' "$@"; printf '\n'; }
    shift
fi
if [ "$#" -lt 3 ]; then
    echo "usage: fit_size.sh [--print] INPUT OUTPUT MEGABYTES [SECONDS]" >&2
    exit 2
fi
input=$1 output=$2 megabytes=$3
if [ "$input" = "$output" ]; then
    echo "the output would overwrite the input" >&2
    exit 2
fi
seconds=${4:-$(ffprobe -v error -show_entries format=duration -of csv=p=0 "$input")}
audio=96
# 5 % are left for the container and for the encoder's error; kilobits per second.
video=$(awk -v m="$megabytes" -v s="$seconds" -v a="$audio" 'BEGIN { printf "%d", m * 8000 * 0.95 / s - a }')
if [ "$video" -lt 100 ]; then
    echo "only ${video} kbit/s would be left for the picture: cut the clip or raise the limit" >&2
    exit 1
fi
log=$(dirname "$output")/.fit_size.$$
trap 'rm -f "$log"*' EXIT
run ffmpeg -hide_banner -loglevel error -y -i "$input" -c:v libx264 -b:v "${video}k" -pass 1 -passlogfile "$log" -an -f null -
run ffmpeg -hide_banner -loglevel error -y -i "$input" -c:v libx264 -b:v "${video}k" -pass 2 -passlogfile "$log" \
    -pix_fmt yuv420p -c:a aac -b:a "${audio}k" -movflags +faststart "$output"
if [ -f "$output" ] && [ "$(wc -c <"$output")" -gt "$(awk -v m="$megabytes" 'BEGIN { printf "%d", m * 1000000 }')" ]; then
    echo "$output is larger than $megabytes MB: short clips overshoot, ask for a few per cent less" >&2
    exit 1
fi
