# tmkit from its wheel: tools/build_wheel.sh && docker build -t tmkit .
# Then: docker run --rm --user "$(id -u)" -v "$PWD:/work" tmkit demo --out /work/demo
FROM python:3.11-slim-bookworm
COPY dist/*.whl /tmp/
RUN pip install --no-cache-dir "$(echo /tmp/*.whl)[pictures,viewer]"
USER 1000
WORKDIR /work
ENTRYPOINT ["tmkit"]
CMD ["--help"]
