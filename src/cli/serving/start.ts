import { defineCommand } from 'citty';
import type { Config } from '../../config/define-config.ts';
import { RefoldError } from '../../errors.ts';
import { withErrorReporting } from '../shared/exit-with-error.ts';
import { configArgument, loadConfig } from '../shared/load-config.ts';
import { adminPathOf } from './admin-token.ts';
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
    'health-port': {
      type: 'string',
      description: 'Of a worker: the port of /health and /metrics',
      valueHint: '9090',
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
        runtime: withHealthPort(config.runtime, args),
        gateway: { ...config.gateway, drainSeconds: config.gateway.drainSeconds ?? drainSeconds },
      },
      {
        role: args.role as 'all', // an enum argument has one of its options
        ...(args.only === undefined ? {} : { only: args.only.split(',').map((name) => name.trim()) }),
        announce: (refold) =>
          announcement(refold, { graphiql: config.gateway.graphiql ?? development, adminPath: adminPathOf(config) }),
      },
    );
  }),
});

function withHealthPort(
  runtime: Config['runtime'],
  args: { readonly role: string; readonly 'health-port'?: string | undefined },
): Config['runtime'] {
  const text = args['health-port'];
  if (text === undefined) return runtime;
  if (args.role !== 'worker')
    throw new RefoldError(
      'INVALID_CONFIG',
      `--health-port is for --role worker. With --role ${args.role} the process answers /health and /metrics on its own port.`,
    );
  const healthPort = Number(text);
  if (text === '' || !Number.isInteger(healthPort) || healthPort < 0 || healthPort > 65_535)
    throw new RefoldError('INVALID_CONFIG', `--health-port is a number from 0 to 65535, found '${text}'.`);
  return { ...runtime, healthPort };
}
