import { chmod, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { onTestFinished } from 'vitest';
import { quickFolder } from '../support/quick-folder.ts';

/** A user's own folder, with the packages of this one. It is removed after the test. */
export async function userFolder(files: Readonly<Record<string, string>> = {}): Promise<string> {
  const folder = await mkdtemp(join(quickFolder(), 'refold-user-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  // If root runs the tests, an embedded server runs as another user, who must be able to enter.
  await chmod(folder, 0o755);
  await symlink(resolve('node_modules'), join(folder, 'node_modules'));
  await writeFile(join(folder, 'package.json'), '{"type":"module"}');
  for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text);
  return folder;
}

/** An application in its own file. `text` can use Refold's names, and those of the tests' sample domain. */
export async function applicationFile(text: string): Promise<string> {
  const folder = await userFolder({
    'app.ts': [
      `import { z } from 'zod';`,
      `import { defineCommand, defineConfig, defineEvents, defineImport, defineProjection, defineReactor, extendSchema, t } from '${resolve('src/index.ts')}';`,
      `import { account, balanceV1, balanceV2, credit, openAccount, openingsV1 } from '${resolve('test/support/sample-domain.ts')}';`,
      text,
    ].join('\n'),
  });
  return join(folder, 'app.ts');
}
