# The image of this repository's sample: `docker compose up --build`. An application of your own has a Dockerfile by `refold init`.
# One image does everything: the arguments decide, such as `start --role gateway` or `migrate`. See docs/containers.md.
FROM node:24.21.0-alpine AS packages
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
# The packages of Refold, and three that only the sample uses. The lockfile has the versions of all.
RUN npm install --no-save --save-prod --omit=dev --ignore-scripts zod @nats-io/jetstream @nats-io/transport-node

FROM node:24.21.0-alpine
ENV NODE_ENV=production HOST=0.0.0.0 PORT=4000 REFOLD_RUNTIME_HEALTH_PORT=4000
WORKDIR /app
COPY --from=packages /app/node_modules node_modules
COPY package.json ./
COPY migrations migrations
COPY docs/admin-schema.graphql docs/
COPY src src
COPY examples examples
WORKDIR /app/examples/deployment
# The user `node` by its number, so Kubernetes can tell that it is not root. It can write nothing of the application.
USER 1000:1000
EXPOSE 4000
# Gateways and workers answer it on the same port. It asks whether the process responds, not whether it is ready.
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=3 \
  CMD ["node", "-e", "fetch('http://127.0.0.1:' + process.env.PORT + '/health/live').then(({ ok }) => process.exit(ok ? 0 : 1), () => process.exit(1))"]
ENTRYPOINT ["node", "../../src/cli/main.ts"]
CMD ["start"]
