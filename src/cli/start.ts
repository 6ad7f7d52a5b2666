import { defineCommand } from 'citty';
import { announcement } from './announcement.ts';
import { telling } from './exit-with-error.ts';
import { configArgument, loadConfig } from './load-config.ts';
import { serve } from './serve.ts';

export const start = defineCommand({
  meta: { name: 'start', description: 'Run the application in production.' },
  args: {
    role: {
      type: 'enum',
      options: ['all', 'gateway', 'worker'],
      default: 'all',
      description: 'Answer clients, keep read models current, or both',
    },
    ...configArgument,
  },
  run: telling(async ({ args }) => {
    const config = await loadConfig(args.config);
    const development = config.development ?? false;
    await serve(
      { ...config, development },
      { role: args.role as 'all', announce: (refold) => announcement(refold, config.gateway.graphiql ?? development) },
    ); // an enum argument has one of its options
  }),
});
