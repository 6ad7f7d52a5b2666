import { setTimeout as pause } from 'node:timers/promises';
import { inspect } from 'node:util';
import { buildSchema, type GraphQLSchema } from 'graphql';
import type { Config } from '../../config/define-config.ts';
import { RefoldError } from '../../errors.ts';
import type { ReloadableRefold } from '../../refold.ts';
import { schemaDiff } from '../../schema/analysis/schema-diff.ts';
import { reasonOf } from '../../thrown.ts';
import { declaredSchema } from '../setup/declared-schema.ts';
import type { ApplicationModules } from './application-modules.ts';

export interface ReloadOptions {
  readonly config: Config;
  readonly modules: ApplicationModules;
  /** Loads the application again. */
  load(): Promise<Config>;
  /** Writes the schema file if it differs. Returns whether it did. */
  writeSchema(config: Config): boolean;
  /** Prints a line. */
  say(line: string): void;
  /** Prints an error that leaves the application as it is. */
  sayError(message: string): void;
}

// In milliseconds. Polling notices changes on every file system, those of containers included, and files that did not exist. For a hundred
// files it takes less than a millisecond.
const pollMs = 50;

/** Follows the files of an application, and replaces its declarations with each edit, until the signal aborts. */
export async function reloadOnEdits(
  refold: Pick<ReloadableRefold, 'redeclare'>,
  options: ReloadOptions,
  signal: AbortSignal,
): Promise<void> {
  const { modules } = options;
  let { config } = options;
  let stamp = modules.stamp();
  let isWriting = true; // a file may have been edited during the start
  while (await elapsed(pollMs, signal)) {
    const now = modules.stamp();
    const wasWriting = isWriting;
    isWriting = now !== stamp;
    stamp = now;
    // A file that changes is read when it has stayed the same for one poll: an editor may write it in parts.
    if (isWriting || !wasWriting) continue;
    const files = modules.changed();
    if (files.length === 0) continue;
    config = await reload(refold, config, files, options);
    stamp = modules.stamp();
    isWriting = true;
  }
}

/** Returns the configuration that is served now. */
async function reload(
  refold: Pick<ReloadableRefold, 'redeclare'>,
  former: Config,
  files: readonly string[],
  { modules, load, writeSchema, say, sayError }: ReloadOptions,
): Promise<Config> {
  modules.renew(files);
  let config: Config;
  try {
    config = await load();
    modules.loaded();
    const before = buildSchema(declaredSchema(former));
    const warnings = await refold.redeclare(config);
    const lines = [...versionLines(former, config), ...warnings, ...schemaLines(before, config)];
    for (const line of lines.length > 0 ? lines : [noEffect(former, config)]) say(line);
  } catch (error) {
    const message = error instanceof RefoldError ? error.message : inspect(error);
    sayError(`${message}\n\nrefold: the last good state goes on serving`);
    return former;
  }
  for (const section of ['database', 'runtime', 'gateway'] as const)
    if (inspect(former[section], allOf) !== inspect(config[section], allOf))
      say(`the options '${section}' changed: restart refold dev to apply them`);
  try {
    if (writeSchema(config)) say('the schema file is written');
  } catch (error) {
    sayError(`the schema file could not be written: ${reasonOf(error)}`);
  }
  return config;
}

const allOf = { depth: null, sorted: true } as const;

function versionLines(former: Config, config: Config): string[] {
  const idsOf = ({ projections }: Config) => projections.map(({ id }) => id);
  const [before, after] = [idsOf(former), idsOf(config)];
  return [
    ...after.filter((id) => !before.includes(id)).map((id) => `${id} is new, so it is built`),
    ...before.filter((id) => !after.includes(id)).map((id) => `${id} is no longer declared`),
  ];
}

/** Shows what changes of rows and root fields. Inputs and aggregates follow from these, and are only counted. */
function schemaLines(before: GraphQLSchema, config: Config): string[] {
  const changes = schemaDiff(before, buildSchema(declaredSchema(config)));
  const main = new Set(['Query', 'Mutation', 'Subscription', ...config.projections.map(({ graphql }) => graphql.type)]);
  const lines = changes
    .filter(({ path }) => main.has(path.split('.')[0] ?? ''))
    .map(({ message }) => `schema: ${message}`);
  const others = changes.length - lines.length;
  if (others === 0) return lines;
  return [...lines, `schema: ${others} ${lines.length === 0 ? 'changes' : 'more changes'} of inputs and other types`];
}

/** Versions are rebuilt if their own code changed. Code that it calls is not compared, so say what to do. */
function noEffect(former: Config, config: Config): string {
  const again = config.projections.filter((projection) => !former.projections.includes(projection));
  const reloaded = 'reloaded; no declaration changed';
  if (again.length === 0) return reloaded;
  return `${reloaded}. If the rows depend on the edited code, rebuild them: ${again.map(({ id }) => `refold rebuild ${id}`).join('; ')}`;
}

/** Returns false if the signal aborts. */
async function elapsed(ms: number, signal: AbortSignal): Promise<boolean> {
  await pause(ms, undefined, { signal }).catch(() => {}); // it rejects only on abort
  return !signal.aborted;
}
