#!/usr/bin/env bash
# Build the image of the studio and try it: as another user, on a read-only file system, with a token from a secret.
#
#     bash scripts/try_image.sh docker      or podman; dist/ has the wheel, `make release` builds it
set -euo pipefail
engine=${1:-docker}
folder=$(mktemp -d)
name=tdce-studio-trial-$$
trap '"$engine" rm --force "$name" > /dev/null 2>&1 || true; rm -rf "$folder"' EXIT

"$engine" build --tag tdce-studio ${BASE:+--build-arg BASE="$BASE"} .
"$engine" run --rm --entrypoint python3 --volume "$folder:/out" --user "$(id -u)" tdce-studio -c "
import tdce
data = tdce.load('german')
tdce.Explainer(hidden=32, steps=100).fit(data.frame, label=data.label, favourable='good').save('/out/studio.tdce')"
printf 'a-token-that-nobody-guesses\n' > "$folder/token"
chmod 755 "$folder" && chmod 644 "$folder/studio.tdce" "$folder/token"

"$engine" run --detach --name "$name" --read-only --tmpfs /tmp --cap-drop ALL --security-opt no-new-privileges \
    --publish 127.0.0.1:8484:8484 --volume "$folder:/artefact:ro" --volume "$folder/token:/run/secrets/tdce_token:ro" tdce-studio
for _ in $(seq 60); do
    curl --silent --fail http://127.0.0.1:8484/health && break
    sleep 1
done
test "$("$engine" exec "$name" id -u)" = 10001
test "$(curl --silent --output /dev/null --write-out '%{http_code}' http://127.0.0.1:8484/schema)" = 401
test "$(curl --silent --output /dev/null --write-out '%{http_code}' -H 'Authorization: Bearer a-token-that-nobody-guesses' http://127.0.0.1:8484/schema)" = 200
echo "The image works."
