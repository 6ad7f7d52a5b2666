import { defineCommand } from 'citty';
import { withErrorReporting } from '../shared/exit-with-error.ts';
import { configArgument, loadConfig } from '../shared/load-config.ts';
import { announcement } from './announcement.ts';
import { serve } from './serve.ts';

export const dev = defineCommand({
  meta: {
    name: 'dev',
    description: 'Run the application for development: migrations, GraphiQL, frozen rows, edited versions rebuilt.',
  },
  args: { ...configArgument },
  run: withErrorReporting(async ({ args }) => {
    const config = await loadConfig(args.config);
    await serve(
      { ...config, development: true },
      { announce: (refold) => announcement(refold, config.gateway.graphiql ?? true) },
    );
  }),
});
