#!/usr/bin/env node
import module from 'node:module';
import { defineCommand } from 'citty';
import { runCommandLine } from './command-line.ts';
import { exitWithError } from './exit-with-error.ts';
import { nodeProblem } from './node-version.ts';

// Must run before anything that an older Node lacks is imported or called: its error would not mention the Node version.
const problem = nodeProblem(process.versions.node);
if (problem) {
  console.error(`refold: ${problem}`);
  process.exit(1);
}

// Caches compiled modules between calls. It saves half of the time of a short command.
module.enableCompileCache();

const main = defineCommand({
  meta: { name: 'refold', description: 'An event log in PostgreSQL, turned into a live GraphQL API.' },
  subCommands: {
    dev: () => import('./dev.ts').then(({ dev }) => dev),
    start: () => import('./start.ts').then(({ start }) => start),
    migrate: () => import('./migrate.ts').then(({ migrateCommand }) => migrateCommand),
    status: () => import('./status.ts').then(({ status }) => status),
    history: () => import('./history.ts').then(({ history }) => history),
    activate: () => import('./activate.ts').then(({ activate }) => activate),
    canary: () => import('./canary.ts').then(({ canary }) => canary),
    shadow: () => import('./shadow.ts').then(({ shadow }) => shadow),
    rollback: () => import('./rollback.ts').then(({ rollback }) => rollback),
    rebuild: () => import('./rebuild.ts').then(({ rebuild }) => rebuild),
    snapshot: () => import('./snapshot.ts').then(({ snapshot }) => snapshot),
    'dead-letters': () => import('./dead-letters.ts').then(({ deadLetters }) => deadLetters),
    reactor: () => import('./reactor.ts').then(({ reactor }) => reactor),
    verify: () => import('./verify.ts').then(({ verify }) => verify),
    changes: () => import('./changes.ts').then(({ changes }) => changes),
    usage: () => import('./usage.ts').then(({ usage }) => usage),
    diff: () => import('./diff.ts').then(({ diff }) => diff),
    retire: () => import('./retire.ts').then(({ retire }) => retire),
    check: () => import('./check.ts').then(({ check }) => check),
    url: () => import('./url.ts').then(({ url }) => url),
    schema: () => import('./schema.ts').then(({ schema }) => schema),
    import: () => import('./import.ts').then(({ importCommand }) => importCommand),
  },
});

process.on('unhandledRejection', exitWithError);
// The reader of the output has closed it, as `head` does. That is no error; exit with the code of a program that SIGPIPE ends.
process.stdout.on('error', (error) =>
  'code' in error && error.code === 'EPIPE' ? process.exit(141) : exitWithError(error),
);
void runCommandLine(main, process.argv.slice(2)).catch(exitWithError);
