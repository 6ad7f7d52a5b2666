#!/usr/bin/env node
import { defineCommand } from 'citty';
import { runCommandLine } from './command-line.ts';
import { exitWithError } from './exit-with-error.ts';

const main = defineCommand({
  meta: { name: 'refold', description: 'An event log in PostgreSQL, turned into a live GraphQL API.' },
  subCommands: {
    dev: () => import('./dev.ts').then(({ dev }) => dev),
    start: () => import('./start.ts').then(({ start }) => start),
    migrate: () => import('./migrate.ts').then(({ migrateCommand }) => migrateCommand),
    status: () => import('./status.ts').then(({ status }) => status),
    activate: () => import('./activate.ts').then(({ activate }) => activate),
    rollback: () => import('./rollback.ts').then(({ rollback }) => rollback),
    rebuild: () => import('./rebuild.ts').then(({ rebuild }) => rebuild),
    'dead-letters': () => import('./dead-letters.ts').then(({ deadLetters }) => deadLetters),
    verify: () => import('./verify.ts').then(({ verify }) => verify),
    diff: () => import('./diff.ts').then(({ diff }) => diff),
    retire: () => import('./retire.ts').then(({ retire }) => retire),
    schema: () => import('./schema.ts').then(({ schema }) => schema),
    import: () => import('./import.ts').then(({ importCommand }) => importCommand),
  },
});

process.on('unhandledRejection', exitWithError);
// Whoever read what this prints has seen enough, as `head` does: no error, and the exit code of a program that SIGPIPE ends.
process.stdout.on('error', (error) =>
  'code' in error && error.code === 'EPIPE' ? process.exit(141) : exitWithError(error),
);
void runCommandLine(main, process.argv.slice(2)).catch(exitWithError);
