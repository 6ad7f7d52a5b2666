/** `npm run build`: builds `dist/` from scratch, as it is published. */
import { execFileSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { buildAdminPage } from './build-admin.ts';

// Except for the admin page, which gateways that run from the sources serve, and which is built anew only if its sources have changed.
mkdirSync('dist', { recursive: true });
for (const entry of readdirSync('dist')) if (entry !== 'admin-page') rmSync(join('dist', entry), { recursive: true });
execFileSync('tsc', ['-p', 'tsconfig.build.json'], { stdio: 'inherit' });

const cli = 'dist/cli/main.js';
if (existsSync(cli)) chmodSync(cli, 0o755);

await buildAdminPage();
