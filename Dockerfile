# The gateway in a container: non-root, state in one volume, no dev dependencies.

FROM node:24-bookworm-slim AS dependencies
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
RUN npm ci --omit=dev --ignore-scripts && npm cache clean --force

FROM node:24-bookworm-slim
ENV NODE_ENV=production \
    NANOBOT_HOME=/data
WORKDIR /app
# What confines programs that the agent runs, where this container may make name spaces.
RUN apt-get update \
 && apt-get install -y --no-install-recommends bubblewrap \
 && rm -rf /var/lib/apt/lists/*
RUN install -d -o node -g node -m 0700 /data
COPY --from=dependencies /app/node_modules ./node_modules
COPY package.json LICENSE ./
COPY bin ./bin
COPY config ./config
COPY workspace ./workspace
COPY skills ./skills
COPY src ./src
USER node
VOLUME /data
EXPOSE 18790
# The gateway handles SIGTERM itself and drains; it may run as process 1.
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=30s --timeout=5s --start-period=15s --retries=3 \
  CMD ["node", "-e", "fetch('http://127.0.0.1:18790/healthz').then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]
ENTRYPOINT ["node", "--max-semi-space-size=4", "--heap-growing-percent=50", "--memory-saver-mode", "bin/nanobot.js"]
CMD ["gateway"]
