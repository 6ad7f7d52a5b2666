/** `npm run build`: builds `dist/` from scratch, as it is published. */
import { execFileSync } from 'node:child_process';
import { chmodSync, existsSync, rmSync } from 'node:fs';
import { buildAdminPage } from './build-admin.ts';

rmSync('dist', { recursive: true, force: true });
execFileSync('tsc', ['-p', 'tsconfig.build.json'], { stdio: 'inherit' });

const cli = 'dist/cli/main.js';
if (existsSync(cli)) chmodSync(cli, 0o755);

await buildAdminPage();
