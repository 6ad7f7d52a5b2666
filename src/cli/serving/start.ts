import { defineCommand } from 'citty';
import { RefoldError } from '../../errors.ts';
import { withErrorReporting } from '../shared/exit-with-error.ts';
import { configArgument, loadConfig } from '../shared/load-config.ts';
import { announcement } from './announcement.ts';
import { serve } from './serve.ts';

// Load balancers and Kubernetes check the readiness every few seconds; or they learn of the stop when the process does, and need a moment
// to spread it.
const drainSeconds = 5;

export const start = defineCommand({
  meta: { name: 'start', description: 'Run the application in production.' },
  args: {
    role: {
      type: 'enum',
      options: ['all', 'gateway', 'worker'],
      default: 'all',
      description: 'Answer clients, maintain read models, or both',
    },
    only: {
      type: 'string',
      description: 'Maintain only these versions and reactors',
      valueHint: 'cart_summary@2,…',
    },
    embedded: {
      type: 'boolean',
      default: false,
      description: 'Without a database URL, run an embedded PostgreSQL with its data in .refold/',
    },
    ...configArgument,
  },
  run: withErrorReporting(async ({ args }) => {
    const config = await loadConfig(args.config);
    const development = config.development ?? false;
    if (config.database.url === undefined && !development && !args.embedded)
      throw new RefoldError(
        'INVALID_CONFIG',
        'No database is configured. Set DATABASE_URL, or database.url in the configuration. To run an embedded PostgreSQL with its data in .refold/, use --embedded.',
      );
    await serve(
      {
        ...config,
        development,
        gateway: { ...config.gateway, drainSeconds: config.gateway.drainSeconds ?? drainSeconds },
      },
      {
        role: args.role as 'all', // an enum argument has one of its options
        ...(args.only === undefined ? {} : { only: args.only.split(',').map((name) => name.trim()) }),
        announce: (refold) => announcement(refold, config.gateway.graphiql ?? development),
      },
    );
  }),
});
