/** `npm run build`: `dist/`, as it is published, from nothing. */
import { execFileSync } from 'node:child_process';
import { chmodSync, existsSync, rmSync } from 'node:fs';

rmSync('dist', { recursive: true, force: true });
execFileSync('tsc', ['-p', 'tsconfig.build.json'], { stdio: 'inherit' });

const cli = 'dist/cli/main.js';
if (existsSync(cli)) chmodSync(cli, 0o755);
