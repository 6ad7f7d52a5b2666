import { relative } from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import type { Reporter, SerializedError, TestCase, TestModule } from 'vitest/node';
import { type Problem, writeRunResult } from '../../scripts/run-result.ts';

/** Vitest's reporter in CI: writes the numbers of the run, and the failures with their reasons, for the last lines of CI's output. */
export function ciReporter(): Reporter {
  return {
    onTestRunEnd(modules, unhandled, reason) {
      const passed = modules.flatMap((module) => [...module.children.allTests('passed')]).length;
      const problems = [
        ...modules.flatMap(problemsOf),
        ...unhandled.map((error) => problem('outside of any test', error)),
      ];
      writeRunResult('tests', {
        passed,
        failed: problems.length,
        success: reason === 'passed' && problems.length === 0,
        problems,
      });
    },
  };
}

function problemsOf(module: TestModule): readonly Problem[] {
  const file = `${module.project.name}: ${relative('.', module.moduleId)}`;
  const suites = [...module.children.allSuites()];
  const problems = [
    ...module.errors().map((error) => problem(file, error)),
    ...suites.flatMap((suite) => suite.errors().map((error) => problem(`${file} > ${suite.fullName}`, error))),
    ...[...module.children.allTests('failed')].map((test) => problem(`${file} > ${test.fullName}`, firstError(test))),
  ];
  if (problems.length === 0 && !module.ok()) problems.push({ name: file, message: 'The file did not finish.' });
  return problems;
}

function firstError(test: TestCase): SerializedError | undefined {
  return test.result().errors?.[0];
}

/** The reason. A property that fails names its counterexample, and the reason is its cause, so that comes first. */
export function problem(name: string, error: SerializedError | undefined): Problem {
  const parts = [...(error?.cause ? described(error.cause) : []), ...described(error)];
  return { name, message: stripVTControlCharacters(parts.join('\n')) };
}

/** The message, where in our files it was thrown, and the difference. */
function described(error: SerializedError | undefined): readonly string[] {
  const place = error?.stacks?.[0];
  return [
    error?.message ?? '',
    ...(place ? [`at ${relative('.', place.file)}:${place.line}`] : []),
    ...(typeof error?.diff === 'string' ? [error.diff] : []),
  ];
}
