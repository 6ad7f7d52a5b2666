import { render } from 'preact';
import { App } from './app.tsx';
import { applyTheme } from './theme.ts';
import './style/base.css';
import './style/shell.css';
import './style/parts.css';
import './style/pages.css';

const place = document.getElementById('app');
if (!place) throw new Error('The page has no element #app.');
applyTheme();
render(<App />, place);
