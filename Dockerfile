# The service in one image: `docker build -t sqlcrystal .`; compose.yaml beside it has a store and, on demand, a model.
FROM python:3.12-slim AS build
WORKDIR /source
COPY . .
RUN pip install --no-cache-dir build hatchling && python -m hatchling build -t wheel -d /wheels

FROM python:3.12-slim
RUN useradd --create-home --uid 10001 sqlcrystal
COPY --from=build /wheels /wheels
RUN pip install --no-cache-dir "$(ls /wheels/*.whl)[server,mcp,postgres,mysql,duckdb,otel]" && rm -r /wheels
USER sqlcrystal
WORKDIR /team
EXPOSE 8321
HEALTHCHECK --interval=10s --timeout=3s --start-period=20s \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8321/ready', timeout=2)"]
# One process: several containers share a store in PostgreSQL.
ENTRYPOINT ["sqlcrystal"]
CMD ["serve", "--host", "0.0.0.0"]
STOPSIGNAL SIGTERM
