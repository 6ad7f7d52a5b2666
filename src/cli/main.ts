#!/usr/bin/env node
import module from 'node:module';
import { runCommandLine } from './command-line.ts';
import { refold } from './commands.ts';
import { nodeProblem } from './node-version.ts';
import { exitWithError } from './shared/exit-with-error.ts';

// Must run before anything that an older Node lacks is imported or called: its error would not mention the Node version.
const problem = nodeProblem(process.versions.node);
if (problem) {
  console.error(`refold: ${problem}`);
  process.exit(1);
}

// Caches compiled modules between calls. It saves half of the time of a short command.
module.enableCompileCache();

process.on('unhandledRejection', exitWithError);
// The reader of the output has closed it, as `head` does. That is no error; exit with the code of a program that SIGPIPE ends.
process.stdout.on('error', (error) =>
  'code' in error && error.code === 'EPIPE' ? process.exit(141) : exitWithError(error),
);
void runCommandLine(refold, process.argv.slice(2)).catch(exitWithError);
