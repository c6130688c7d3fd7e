# Headwise as a server.
#
#   docker build -t headwise .
#   docker run --rm -p 127.0.0.1:8000:8000 -v "$PWD/runs/my-run/model:/models/mine:ro" \
#     -v "$PWD/keys.txt:/run/keys.txt:ro" headwise --model mine=/models/mine
#
# keys.txt holds an API key a line and must be readable by user 10001 alone:
#   head -c 24 /dev/urandom | base64 > keys.txt && chmod 600 keys.txt && sudo chown 10001 keys.txt
FROM python:3.11-slim AS build
WORKDIR /src
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY src ./src
# The CPU build of torch: the others are ten times as large, and serving needs none of it.
RUN python -m venv /opt/headwise \
 && /opt/headwise/bin/pip install --no-cache-dir --constraint constraints.txt \
      --extra-index-url https://download.pytorch.org/whl/cpu .

FROM python:3.11-slim
COPY --from=build /opt/headwise /opt/headwise
# The fast engine's form of a model is written to the cache where the model's own folder is read-only.
RUN useradd --uid 10001 --create-home headwise
USER 10001
ENV PATH=/opt/headwise/bin:$PATH PYTHONUNBUFFERED=1
EXPOSE 8000
HEALTHCHECK --interval=15s --timeout=5s --start-period=60s CMD \
  ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8000/health/ready', timeout=4)"]
# SIGTERM, which docker stop sends, finishes what was accepted: give it more time than --grace.
STOPSIGNAL SIGTERM
ENTRYPOINT ["headwise", "serve", "--host", "0.0.0.0", "--api-key-file", "/run/keys.txt"]
