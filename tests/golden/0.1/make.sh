#!/usr/bin/env bash
# How release 0.1 wrote the files of this folder, from its checkout: PATH=.venv/bin:$PATH bash .../tests/golden/0.1/make.sh
#
# The files are kept for good and never written again: every later version has to read them. `config` was written by hand;
# `inputs` is the release's sample with two pairs of label maps, so that what is read here does not move with the sample.
set -eu
sample="$PWD/sample_data/coco"
cd "$(dirname "$0")"
test "$(jaccard-eval --version)" = "jaccard-eval 0.1.0"

mkdir -p inputs results runs baselines cells
cp "$sample/gt.json" "$sample/better.json" "$sample/worse.json" inputs
python - <<'END'
from pathlib import Path
import numpy as np
from PIL import Image

MAPS = {"gt": {"a": "0011/0012", "b": "9912"}, "pred": {"a": "0010/0012", "b": "0022"}}  # a digit is a pixel; 9 is void
for side, pictures in MAPS.items():
    Path("inputs/maps", side).mkdir(parents=True, exist_ok=True)
    for name, rows in pictures.items():
        pixels = np.array([list(map(int, row)) for row in rows.split("/")], dtype=np.uint8)
        Image.fromarray(pixels).save(f"inputs/maps/{side}/{name}.png")
END

sides="inputs/gt.json inputs/better.json"
run() { jaccard-eval "$@" --quiet --isolated >/dev/null; }
plain() { jaccard-eval "$@" --quiet >/dev/null; }
broken() { if run "$@"; then false; else test $? = 1; fi; } # a gate fails, and all is written

run evaluate $sides --no-errors -o results/plain.json
run evaluate $sides -o results/errors.json -o cells/thresholds.yaml -o cells/confusion.csv -o cells/curves.csv \
    -o cells/calibration.csv
run evaluate $sides --no-errors --bootstrap 100 --seed 7 -o results/bootstrap.json
run evaluate $sides --no-errors --slice 'first=street_0[1-6]*' --slices config/slices.toml -o results/slices.json
run evaluate $sides --no-errors --score 0.5 -o results/score.json
run evaluate $sides --no-errors --score best-f1 -o results/best-f1.json
run evaluate $sides --no-errors --classes dog,car -o results/classes.json
run evaluate $sides --no-errors --class-agnostic -o results/class-agnostic.json
run evaluate $sides --no-errors --class-map config/class-map.json -o results/class-map.json
run evaluate $sides --no-errors --iou 0.5,0.75 --areas 'small=0:32²,rest=32²:inf' --max-dets 1,5 -o results/areas.json
run evaluate $sides --no-errors --nms 0.6 --score-min 0.2 -o results/nms.json
run evaluate $sides --no-errors --protocol voc2007 -o results/voc2007.json
run evaluate $sides --no-errors --protocol voc2012 --score 0.5 -o results/voc2012.json
broken evaluate $sides --no-errors --fail-under AP=0.9 --fail-under 'recall[iou=0.5,score=0.4,class=dog]=0.5' \
    --fail-over external.latency_ms=15 --metrics-file config/external.json -o results/gates.json -o cells/junit.xml \
    -o cells/metrics.txt -o cells/badge.json -o cells/gl-code-quality-report.json

run evaluate $sides --no-errors -o runs/better.json -o runs/better.npz
run evaluate inputs/gt.json inputs/worse.json --no-errors -o runs/worse.json -o runs/worse.npz
run evaluate $sides --no-errors --protocol voc2012 --slices config/slices.toml --bootstrap 50 -o runs/voc2012.npz
plain evaluate $sides --no-errors --config config/project/pyproject.toml --update-baseline --allow-missing-baseline
run pixels inputs/maps/gt inputs/maps/pred --classes sky,road,car --ignore 9 --baseline baselines/pixels.json \
    --update-baseline --fail-under mIoU=0.5

run pixels inputs/maps/gt inputs/maps/pred --classes sky,road,car --ignore 9 -o results/pixels.json
broken gate runs/better.json --fail-under AP=0.9 --fail-drop AP=0.01 --baseline baselines/main.json -o results/gate.json
plain compare runs/worse.npz runs/better.npz --bootstrap 50 -o results/compare.json
plain explain $sides 'AP50[class=person]' --against voc2012 -o results/explain.json
plain inspect $sides -o results/inspect.json
plain sensitivity $sides --rounds 2 --noise 1 -o results/sensitivity.json
plain overlap 6,1,18,9 1,3,13,11 -o results/overlap.json
plain verify results/plain.json $sides -o results/verify.json
