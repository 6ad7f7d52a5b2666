#!/usr/bin/env node
/** `npm create refold [folder]`: the same as `refold init [folder]`. */
import { spawnSync } from 'node:child_process';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';

const manifest = createRequire(import.meta.url).resolve('refold/package.json');
const program = join(dirname(manifest), 'dist/cli/main.js');
const { status } = spawnSync(process.execPath, [program, 'init', ...process.argv.slice(2)], { stdio: 'inherit' });
process.exitCode = status ?? 1;
