# The gateway in a container: non-root, state in one volume, the bundle and the packages outside of it.

FROM node:24-bookworm-slim AS dependencies
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
RUN npm ci --omit=dev --ignore-scripts && npm cache clean --force

FROM dependencies AS program
RUN npm ci --ignore-scripts
COPY scripts/build.ts scripts/load-parts.ts scripts/page.ts scripts/rust-bridge.ts ./scripts/
COPY src ./src
RUN node scripts/build.ts

# Node without the names of its functions, packages without types and maps: 30 MB less.
FROM dependencies AS runtime
RUN apt-get update && apt-get install -y --no-install-recommends binutils
RUN strip /usr/local/bin/node
RUN rm -r node_modules/@types && find node_modules -type f \( -name '*.d.ts' -o -name '*.d.mts' -o -name '*.d.cts' -o -name '*.map' \) -delete

FROM debian:bookworm-slim
# "container" says where it runs; the log goes to the engine.
ENV NODE_ENV=production \
    MALLOC_ARENA_MAX=1 \
    MALLOC_TRIM_THRESHOLD_=131072 \
    MALLOC_MMAP_THRESHOLD_=16384 \
    MALLOC_TOP_PAD_=0 \
    NANOBOT_HOME=/data \
    NANOBOT__logging__stdout=true \
    container=oci
WORKDIR /app
# What confines programs that the agent runs, where this container may make name spaces.
RUN apt-get update \
 && apt-get install -y --no-install-recommends bubblewrap \
 && rm -rf /var/lib/apt/lists/* /var/cache/apt/*
RUN useradd --uid 1000 --user-group --create-home node
RUN install -d -o node -g node -m 0700 /data /srv/nanobot \
 && ln -s /app/bin/nanobot.js /usr/local/bin/nanobot
COPY --from=runtime /usr/local/bin/node /usr/local/bin/
COPY --from=runtime /app/node_modules ./node_modules
COPY package.json LICENSE ./
COPY bin ./bin
COPY config ./config
COPY workspace ./workspace
COPY skills ./skills
COPY --from=program /app/dist ./dist
USER node
# Starts the gateway once, so that what it compiles is kept in the image, which it does 5 s later. The flags are those of ENTRYPOINT.
RUN export NANOBOT_HOME=/tmp/first; \
    node --min-semi-space-size=4 --max-semi-space-size=4 /usr/local/bin/nanobot gateway --port 0 & \
    while kill -0 $! && [ ! -s /tmp/first/gateway.json ]; do sleep 0.2; done; \
    sleep 6; \
    kill -TERM $! && wait $! && rm -r /tmp/first
VOLUME /data
EXPOSE 18790
# The gateway handles SIGTERM itself and drains; it may run as process 1.
STOPSIGNAL SIGTERM
# Asks the gateway where it listens, whatever its port.
HEALTHCHECK --interval=30s --timeout=5s --start-period=15s --retries=3 \
  CMD ["node", "-e", "fetch(new URL('/healthz', JSON.parse(fs.readFileSync(process.env.NANOBOT_HOME + '/gateway.json')).address)).then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]
ENTRYPOINT ["node", "--min-semi-space-size=4", "--max-semi-space-size=4", "/usr/local/bin/nanobot"]
CMD ["gateway"]
