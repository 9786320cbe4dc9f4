# jaccard-eval as a command, for CI systems without the action:
#   docker build --tag jaccard-eval .
#   docker run --rm --user "$(id -u):$(id -g)" --volume "$PWD:/data" jaccard-eval gt.json detections.json -o report.html

FROM python:3.13-slim AS build
# The compiler stays behind; its version changes no number, as the tests compare the core with Python.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends g++ \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /source
COPY pyproject.toml setup.py MANIFEST.in README.md LICENSE ./
COPY jaccard_eval jaccard_eval
RUN python -m venv /opt/jaccard-eval \
    && /opt/jaccard-eval/bin/pip install --no-cache-dir ".[cloud,parquet,plot]" \
    && /opt/jaccard-eval/bin/jaccard-eval --version -v

FROM python:3.13-slim
COPY --from=build /opt/jaccard-eval /opt/jaccard-eval
# Nothing is written but to /data: matplotlib's cache goes where any user may write.
ENV PATH="/opt/jaccard-eval/bin:$PATH" MPLCONFIGDIR=/tmp PYTHONDONTWRITEBYTECODE=1
RUN useradd --create-home --uid 1000 evaluator
USER 1000
WORKDIR /data
ENTRYPOINT ["jaccard-eval"]
CMD ["--help"]
