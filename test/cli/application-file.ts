import { chmod, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { onTestFinished } from 'vitest';

/** A folder of a user's own, with the packages of this one. Removed when the test is over. */
export async function userFolder(files: Readonly<Record<string, string>> = {}): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'refold-user-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  // Where root runs the tests, an embedded server runs as another user, who has to get in.
  await chmod(folder, 0o755);
  await symlink(resolve('node_modules'), join(folder, 'node_modules'));
  await writeFile(join(folder, 'package.json'), '{"type":"module"}');
  for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text);
  return folder;
}

/** An application in a file of its own. `text` has Refold's names, and those of the sample domain of the tests. */
export async function applicationFile(text: string): Promise<string> {
  const folder = await userFolder({
    'app.ts': [
      `import { z } from 'zod';`,
      `import { defineCommand, defineConfig, defineEvents, defineImport, defineProjection, defineReactor, t } from '${resolve('src/index.ts')}';`,
      `import { account, balanceV1, balanceV2, credit, openAccount, openingsV1 } from '${resolve('test/support/sample-domain.ts')}';`,
      text,
    ].join('\n'),
  });
  return join(folder, 'app.ts');
}
