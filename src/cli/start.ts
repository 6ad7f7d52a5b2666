import { defineCommand } from 'citty';
import { RefoldError } from '../errors.ts';
import { announcement } from './announcement.ts';
import { telling } from './exit-with-error.ts';
import { configArgument, loadConfig } from './load-config.ts';
import { serve } from './serve.ts';

// Balancers and Kubernetes look at the readiness every few seconds, or hear of the stop as the process does and need a moment to pass it on.
const drainSeconds = 5;

export const start = defineCommand({
  meta: { name: 'start', description: 'Run the application in production.' },
  args: {
    role: {
      type: 'enum',
      options: ['all', 'gateway', 'worker'],
      default: 'all',
      description: 'Answer clients, keep read models current, or both',
    },
    embedded: {
      type: 'boolean',
      default: false,
      description: 'Without a database URL, run an embedded PostgreSQL with its data in .refold/',
    },
    ...configArgument,
  },
  run: telling(async ({ args }) => {
    const config = await loadConfig(args.config);
    const development = config.development ?? false;
    if (config.database.url === undefined && !development && !args.embedded)
      throw new RefoldError(
        'INVALID_CONFIG',
        'No database is named. Set DATABASE_URL, or database.url in the configuration. To run an embedded PostgreSQL with its data in .refold/, give --embedded.',
      );
    await serve(
      {
        ...config,
        development,
        gateway: { ...config.gateway, drainSeconds: config.gateway.drainSeconds ?? drainSeconds },
      },
      {
        role: args.role as 'all', // an enum argument has one of its options
        // Nobody else looks after a server of its own.
        migrate: development || config.database.url === undefined,
        announce: (refold) => announcement(refold, config.gateway.graphiql ?? development),
      },
    );
  }),
});
