import { readFileSync, writeFileSync } from 'node:fs';
import { defineCommand } from 'citty';
import type { Config } from '../../config/define-config.ts';
import type { ReloadableRefold } from '../../refold.ts';
import { reasonOf } from '../../thrown.ts';
import { declaredSchema } from '../setup/declared-schema.ts';
import { withErrorReporting } from '../shared/exit-with-error.ts';
import { configArgument, loadConfig } from '../shared/load-config.ts';
import { withAdminToken } from './admin-token.ts';
import { announcement } from './announcement.ts';
import { trackModules } from './application-modules.ts';
import { openInBrowser } from './open-in-browser.ts';
import type { Output } from './output.ts';
import { reloadOnEdits } from './reload.ts';
import { serve } from './serve.ts';

export const dev = defineCommand({
  meta: {
    name: 'dev',
    description:
      'Run the application for development: migrations, GraphiQL, frozen rows. Edited files take effect at once, and edited versions are rebuilt.',
  },
  args: {
    schema: {
      type: 'string',
      description: 'Keep this file up to date with the GraphQL schema of the newest declared versions',
      valueHint: 'FILE',
    },
    open: { type: 'boolean', description: 'Open GraphiQL in the browser' },
    ...configArgument,
  },
  run: withErrorReporting(async ({ args }) => {
    const modules = trackModules();
    const load = async () => {
      loaded = await loadConfig(args.config);
      return loaded;
    };
    let loaded = await loadConfig(args.config);
    const config = loaded;
    modules.loaded();
    const writeSchema = (declared: Config) => args.schema !== undefined && writeIfOther(args.schema, declared);
    const { config: served, adminPath } = withAdminToken(config);
    await serve(
      { ...served, development: true },
      {
        announce: (refold) => announcement(refold, { graphiql: config.gateway.graphiql ?? true, adminPath }),
        async beside(refold, signal, output) {
          const { say, sayError } = output;
          if (args.open && refold.url) openInBrowser(`${refold.url}/graphql`, sayError);
          if (writeSchema(config)) say('the schema file is written');
          const stop = reportStates(refold, () => loaded, output);
          await reloadOnEdits(refold, { config, modules, load, writeSchema, say, sayError }, signal);
          stop();
        },
      },
    );
  }),
});

function writeIfOther(file: string, config: Config): boolean {
  const text = declaredSchema(config);
  if (contentOf(file) === text) return false;
  writeFileSync(file, text);
  return true;
}

function contentOf(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return undefined;
  }
}

/** Prints each change of a version's state. Returns a function that stops it. */
function reportStates(
  { versions, status }: ReloadableRefold,
  declared: () => Config,
  { say, sayError }: Output,
): () => void {
  const known = new Map<string, string>();
  const changed = () =>
    declared().projections.flatMap(({ id, name, version }) => {
      const state = versions.stateOf(name, version);
      if (state === undefined || state === known.get(id)) return [];
      known.set(id, state);
      return [{ id, state }];
    });
  const reportHeld = async (id: string) => {
    const held = (await status()).find(({ name, version }) => `${name}@${version}` === id)?.heldReason ?? null;
    if (held !== null) say(`${id} is ready, but held: ${held}`);
  };
  changed();
  return versions.onChange(() => {
    for (const { id, state } of changed()) {
      if (state === 'ready') void reportHeld(id).catch((error: unknown) => sayError(reasonOf(error)));
      else if (state !== 'building') say(`${id} is ${state}`);
    }
  });
}
