"use strict";

window.mngr.start();
